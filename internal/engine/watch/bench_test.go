package watch_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/tests/testenv"
)

// BenchmarkMemory opens 200 watches as 200 ServiceAccounts over 10,000 objects that were applied to the real API server,
// and reports what they hold.
func BenchmarkMemory(b *testing.B) {
	const watches, each = 200, 50
	grantAll(b)
	namespaces := make([]string, watches)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("bench-%03d", i)
		if err := env.Client.Create(b.Context(), testenv.Namespace(namespaces[i])); err != nil {
			b.Fatal(err)
		}
	}
	var group errgroup.Group
	group.SetLimit(16)
	for _, namespace := range namespaces {
		group.Go(func() error {
			for i := range each {
				apply(b, member(configMaps, namespace, fmt.Sprintf("a-member-of-the-module-%02d", i), namespace, data("1")), manager)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heap()
		watcher, tap, _ := newWatcher(b, nil)
		for _, namespace := range namespaces {
			watcher.Want(namespace, namespace, []watch.Subject{{
				Identity: cluster.Identity{Namespace: namespace, ServiceAccount: "tenant"}, GVK: configMaps, Namespace: namespace,
			}})
		}
		for _, namespace := range namespaces {
			if known(b, watcher, namespace, ref(configMaps, namespace, "a-member-of-the-module-00")) == nil {
				b.Fatal("an object is missing")
			}
		}
		stats := watcher.Stats()
		if lists, opened, _ := tap.counts(); stats.Objects != watches*each || lists != watches || opened != watches {
			b.Fatalf("want one list and one watch each, got %d and %d, %d objects", lists, opened, stats.Objects)
		}
		open := heap()
		watcher.Close()
		b.ReportMetric(float64(open-before)/(1<<20), "MiB")
		b.ReportMetric(float64(open-before)/watches/1024, "KiB/watch")
	}
}

// grantAll lets every ServiceAccount read ConfigMaps.
func grantAll(b *testing.B) {
	b.Helper()
	group := "rbac.authorization.k8s.io"
	role := configMaps
	role.Group, role.Kind = group, "ClusterRole"
	apply(b, member(role, "", "bench", "", map[string]any{
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"list", "watch"}}},
	}), "test")
	role.Kind += "Binding"
	apply(b, member(role, "", "bench", "", map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": "bench"},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "Group", "name": "system:serviceaccounts"}},
	}), "test")
}

// heap is what is in use, with stacks.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}
