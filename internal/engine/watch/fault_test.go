package watch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/tests/testenv"
)

// problem waits for the one problem of owner one.
func problem(t *testing.T, watcher *watch.Watcher, reason watch.Reason) watch.Problem {
	t.Helper()
	var problems []watch.Problem
	testenv.Eventually(t, fmt.Sprintf("have the problem %s", reason), func(context.Context) (bool, string) {
		problems = watcher.Problems("one")
		return len(problems) == 1 && problems[0].Reason == reason, fmt.Sprint(problems)
	})
	return problems[0]
}

func TestForbiddenIsAProblemUntilTheRightIsGranted(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	watcher, tap, ears := newWatcher(t, func(options *watch.Options) { options.Clock = clock })
	subject := watch.Subject{Identity: cluster.Identity{Namespace: namespace, ServiceAccount: "tenant"}, GVK: configMaps, Namespace: namespace}
	watcher.Want("one", "one", []watch.Subject{subject})
	ears.until(t, "one lost ConfigMap")
	got := problem(t, watcher, watch.Forbidden)
	if want := "system:serviceaccount:" + namespace + ":tenant"; !strings.Contains(got.Message, want) || !strings.Contains(got.Message, "list and watch") {
		t.Errorf("the message names the account and the rights it lacks, got %q", got.Message)
	}
	if _, known := watcher.State("one", ref(configMaps, namespace, "a")); known {
		t.Error("what may not be read is not known")
	}

	// Each step is the shortest that ends the pause; a Retry ends it after a second.
	attempts := func() int { lists, _, _ := tap.counts(); return lists }
	for i := range 3 {
		testenv.Eventually(t, "wait", func(context.Context) (bool, string) { return clock.HasWaiters(), "no wait" })
		if now := attempts(); now != i+1 {
			t.Fatalf("without time passing there are no attempts: want %d, got %d", i+1, now)
		}
		watcher.Retry("one")
		clock.Step(time.Second)
		testenv.Eventually(t, "try again", func(context.Context) (bool, string) { return attempts() == i+2, fmt.Sprint(attempts()) })
	}

	allow(t, namespace, "list")
	step := func(until string, done func() bool) {
		testenv.Eventually(t, until, func(context.Context) (bool, string) {
			clock.Step(time.Minute)
			return done(), fmt.Sprint(watcher.Problems("one"))
		})
	}
	step("be forbidden to watch", func() bool {
		problems := watcher.Problems("one")
		return len(problems) == 1 && strings.Contains(problems[0].Message, "cannot watch")
	})
	if heard := ears.take(); len(heard) != 0 {
		t.Errorf("a problem that stays is told once, got %q", heard)
	}
	allow(t, namespace, "list", "watch")
	step("see the subject", func() bool { _, known := watcher.State("one", ref(configMaps, namespace, "a")); return known })
	ears.until(t, "one synced ConfigMap")
	if problems := watcher.Problems("one"); len(problems) != 0 {
		t.Errorf("the problem is over, got %v", problems)
	}
}

// allow lets the tenant do the verbs on ConfigMaps.
func allow(t *testing.T, namespace string, verbs ...string) {
	t.Helper()
	list := make([]any, 0, len(verbs))
	for _, verb := range verbs {
		list = append(list, verb)
	}
	group := rbacv1.SchemeGroupVersion
	apply(t, member(group.WithKind("Role"), namespace, "tenant", "", map[string]any{
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": list}},
	}), "test")
	apply(t, member(group.WithKind("RoleBinding"), namespace, "tenant", "", map[string]any{
		"roleRef":  map[string]any{"apiGroup": group.Group, "kind": "Role", "name": "tenant"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}},
	}), "test")
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, _, ears := newWatcher(t, nil)
	gvk := schema.GroupVersionKind{Group: namespace + ".example.com", Version: "v1", Kind: "Widget"}
	watcher.Want("one", "one", []watch.Subject{{GVK: gvk, Namespace: namespace}})
	ears.until(t, "one lost Widget")
	problem(t, watcher, watch.Absent)

	definition := crd(gvk)
	apply(t, definition, "test")
	testenv.Eventually(t, "establish the CRD", func(ctx context.Context) (bool, string) {
		widgets := &unstructured.UnstructuredList{}
		widgets.SetGroupVersionKind(gvk)
		err := env.Client.List(ctx, widgets)
		return err == nil, fmt.Sprint(err)
	})
	watcher.Retry("one")
	ears.until(t, "one synced Widget")
	apply(t, member(gvk, namespace, "a", "one", nil), manager)
	ears.until(t, "one added Widget a")
	if err := env.Client.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	ears.until(t, "one deleted Widget a", "one lost Widget")
	problem(t, watcher, watch.Absent)
}

func crd(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	return member(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		"", "widgets."+gvk.Group, "", map[string]any{"spec": map[string]any{
			"group": gvk.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": gvk.Kind, "listKind": gvk.Kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		}})
}

func TestFirstListsMayFail(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, tap, ears := newWatcher(t, nil)
	fail := func(lists int) {
		tap.mu.Lock()
		defer tap.mu.Unlock()
		tap.broken = lists
	}
	apply(t, member(configMaps, namespace, "a", "one", data("1")), manager)
	subject := []watch.Subject{{GVK: configMaps, Namespace: namespace}}
	fail(2)
	watcher.Want("one", "one", subject)
	ears.until(t, "one synced ConfigMap")
	if lists, _, _ := tap.counts(); lists != 3 {
		t.Errorf("want two lists that fail and one that does not, got %d", lists)
	}
	if known(t, watcher, "one", ref(configMaps, namespace, "a")) == nil {
		t.Error("the member is there")
	}

	// What goes on is a problem, and over once the API server answers.
	watcher.Want("one", "one", nil)
	fail(1_000_000)
	watcher.Want("one", "one", subject)
	ears.until(t, "one lost ConfigMap")
	problem(t, watcher, watch.Unreachable)
	fail(0)
	watcher.Retry("one")
	ears.until(t, "one synced ConfigMap")
	if problems := watcher.Problems("one"); len(problems) != 0 {
		t.Errorf("the problem is over, got %v", problems)
	}
}

func TestScopesAreChecked(t *testing.T) {
	t.Parallel()
	watcher, tap, _ := newWatcher(t, nil)
	watcher.Want("one", "one", []watch.Subject{{GVK: configMaps}})
	problem(t, watcher, watch.Unsupported)
	watcher.Want("one", "one", []watch.Subject{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Namespace: "default"}})
	problem(t, watcher, watch.Unsupported)
	watcher.Want("one", "one", []watch.Subject{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}})
	known(t, watcher, "one", ref(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", "default"))
	if lists, _, _ := tap.counts(); lists != 1 {
		t.Errorf("what cannot be is not asked for, but there were %d lists", lists)
	}
}

func TestExpiredWatchIsListedAgain(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, tap, ears := newWatcher(t, nil)
	for _, name := range []string{"goes", "changes", "stays"} {
		apply(t, member(configMaps, namespace, name, "one", data("1")), manager)
	}
	watcher.Want("one", "one", []watch.Subject{{GVK: configMaps, Namespace: namespace}})
	ears.until(t, "one synced ConfigMap")

	// The watch that comes next is told that its version is too old, after changes that it has not seen.
	tap.mu.Lock()
	tap.expire, tap.refuse = true, 1
	tap.mu.Unlock()
	tap.cut()
	if err := env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "goes"}}); err != nil {
		t.Fatal(err)
	}
	apply(t, member(configMaps, namespace, "changes", "one", map[string]any{"data": map[string]any{"other": "2"}}), manager)
	apply(t, member(configMaps, namespace, "comes", "one", data("1")), manager)
	if _, known := watcher.State("one", ref(configMaps, namespace, "stays")); !known {
		t.Error("what was seen stays known while the API server is away")
	}
	ears.until(t, "one deleted ConfigMap goes", "one modified ConfigMap changes", "one added ConfigMap comes")
	if lists, _, _ := tap.counts(); lists != 2 {
		t.Errorf("the subject is listed once more, not %d times in all", lists)
	}
}

func TestCutWatchGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	watcher, tap, ears := newWatcher(t, nil)
	apply(t, member(configMaps, namespace, "goes", "one", data("1")), manager)
	watcher.Want("one", "one", []watch.Subject{{GVK: configMaps, Namespace: namespace}})
	ears.until(t, "one synced ConfigMap")
	tap.mu.Lock()
	tap.refuse = 2
	tap.mu.Unlock()
	tap.cut()
	if err := env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "goes"}}); err != nil {
		t.Fatal(err)
	}
	apply(t, member(configMaps, namespace, "comes", "one", data("1")), manager)
	ears.until(t, "one deleted ConfigMap goes", "one added ConfigMap comes")
	if lists, watches, _ := tap.counts(); lists != 1 || watches < 4 {
		t.Errorf("a lost connection costs no list: %d lists, %d watches", lists, watches)
	}
	if problems := watcher.Problems("one"); len(problems) != 0 {
		t.Errorf("an interruption is no problem, got %v", problems)
	}
}
