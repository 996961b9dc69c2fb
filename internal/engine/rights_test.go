package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// TestRightsToCountAreAskedForAtTheInstallation: who may not list users' data is told so when a release is installed,
// and not only when nothing is to be done about it; the installation goes on.
func TestRightsToCountAreAskedForAtTheInstallation(t *testing.T) {
	t.Parallel()
	templates := func(scope modulesv1.ManagedScope) []modulesv1.ManagedResource {
		return []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}, Scope: scope}}
	}
	for name, tc := range map[string]struct {
		reason  string
		managed []modulesv1.ManagedResource
		mode    modulesv1.DeletionMode
		want    []string
	}{
		"Cluster":   {"it may list them in its namespace alone", templates(""), "", []string{"podtemplates in all namespaces"}},
		"Namespace": {"that is all it needs", templates(modulesv1.ManagedInNamespace), "", nil},
		"Orphan":    {"nothing will be deleted", templates(""), modulesv1.DeletionOrphan, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.grant(rule{"", "configmaps", "*"}, rule{"", "podtemplates", "list"})
			r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
			r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
			r.in.Target.ManagedResources, r.in.Target.Deletion = tc.managed, tc.mode
			told := false
			out := r.settle("it is installed", func(out engine.Outcome) bool {
				told = told || noted(out, modulesv1.ForbiddenReason, "podtemplates in all namespaces")
				return settled(out)
			})
			if diff := cmp.Diff(tc.want, out.Uncounted); diff != "" || told != (tc.want != nil) {
				t.Errorf("%s: told %v (-want +got):\n%s", tc.reason, told, diff)
			}
			r.synced()
			if calls := r.calls(func() { out = r.round() }); len(calls) > 0 || !cmp.Equal(tc.want, out.Uncounted) {
				t.Errorf("%s: at rest it asks %v, and says %v", tc.reason, calls, out.Uncounted)
			}
			if tc.want == nil {
				return
			}
			r.start(nil)
			r.settle("it is known again after a restart", func(out engine.Outcome) bool { return settled(out) && cmp.Equal(tc.want, out.Uncounted) })
			r.grantEverywhere("podtemplates")
			// The API server's authorizer hears of a grant by a watch: it may not know of it when it is asked first.
			r.settle("the right is there", func(out engine.Outcome) bool {
				r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultInterval))
				return settled(out) && out.Uncounted == nil
			})
		})
	}
}

// TestAskingForRightsEnds: where each answer takes its time, the release does not wait for all of them.
func TestAskingForRightsEnds(t *testing.T) {
	t.Parallel()
	kinds := []string{
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim",
		"Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	}
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	for _, kind := range kinds {
		r.in.Target.ManagedResources = append(r.in.Target.ManagedResources,
			modulesv1.ManagedResource{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: kind}})
	}
	r.slow("create")
	calls := r.calls(func() {
		testenv.Eventually(t, "it is installed", func(ctx context.Context) (bool, string) {
			out, err := r.engine.Reconcile(ctx, r.in)
			return settled(out), fmt.Sprint(err)
		})
	})
	if asked := calls["create"]; asked == 0 || asked == len(kinds) {
		t.Errorf("asked %d times", asked)
	}
}

// TestAKindInTwoScopesIsCountedEverywhere: two versions of a kind are listed with two scopes, and it is the wider one
// that its objects are counted in, so that the right to list them there is asked for.
func TestAKindInTwoScopesIsCountedEverywhere(t *testing.T) {
	t.Parallel()
	for name, scopes := range map[string][]modulesv1.ManagedScope{
		"WiderFirst": {"", modulesv1.ManagedInNamespace},
		"WiderLast":  {modulesv1.ManagedInNamespace, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.grant(rule{"", "configmaps", "*"}, rule{"autoscaling", "horizontalpodautoscalers", "list"})
			r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
			r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
			for i, version := range []string{"v1", "v2"} {
				r.in.Target.ManagedResources = append(r.in.Target.ManagedResources, modulesv1.ManagedResource{
					GroupVersionKind: modulesv1.GroupVersionKind{Group: "autoscaling", Version: version, Kind: "HorizontalPodAutoscaler"},
					Scope:            scopes[i],
				})
			}
			out := r.settle("it is installed", settled)
			if diff := cmp.Diff([]string{"horizontalpodautoscalers.autoscaling in all namespaces"}, out.Uncounted); diff != "" {
				t.Errorf("the wrong right is asked for (-want +got):\n%s", diff)
			}
		})
	}
}
