package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
)

// TestForbiddenObjectsKeepNobody: objects that the account was never let make are not asked for when they are no longer
// wanted, which it has no right to either. After a restart nobody knows that for certain.
func TestForbiddenObjectsKeepNobody(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]modulesv1.DeletionMode{"Block": modulesv1.DeletionBlock, "Orphan": modulesv1.DeletionOrphan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.grant(rule{"", "secrets", "get"})
			r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
			r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: mode}
			r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
			r.fails(engine.StageApply, modulesv1.ForbiddenReason, "deployer")
			if diff := cmp.Diff([]string{"a:Pending", "b:Pending"}, r.members()); diff != "" {
				t.Error(diff)
			}
			r.in.Deleting, r.in.Target = true, nil
			r.settle("it is gone", done)
			if r.inventory() != nil {
				t.Error("the inventory is left")
			}
		})
	}
	t.Run("Restart", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.grant(rule{"", "secrets", "get"})
		r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
		r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
		r.fails(engine.StageApply, modulesv1.ForbiddenReason, "deployer")
		r.start(nil)
		r.in.Deleting, r.in.Target = true, nil
		r.fails(engine.StageDelete, modulesv1.ForbiddenReason, "may not get configmaps")
		r.grant(rule{"", "configmaps", "get"})
		r.settle("it is gone", done)
	})
	t.Run("Config", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.grant(rule{"", "configmaps", "*"})
		r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
		r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
		r.settle("it is installed", settled)
		r.in.Spec.Config = &modulesv1.InstallationConfig{TargetNamespace: "kube-system"}
		r.fails(engine.StageApply, modulesv1.ForbiddenReason, "kube-system")
		r.in.Spec.Config = nil
		r.settle("it is as it was", settled)
		if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Made", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.grant(rule{"", "configmaps", "*"})
		r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
		r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
		r.settle("it is installed", settled)
		r.grant(rule{"", "secrets", "get"})
		r.in.Deleting, r.in.Target = true, nil
		r.fails(engine.StageDelete, modulesv1.ForbiddenReason, "configmaps in namespace")
		if diff := cmp.Diff([]string{"a"}, r.present()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDefaultConfigOfAnotherIsLeft: an object of the default configuration's name that somebody else has made is the
// user's for good: no later release makes one, of whatever name, and a deletion leaves it.
func TestDefaultConfigOfAnotherIsLeft(t *testing.T) {
	t.Parallel()
	fallback := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"key": "1"},
		}}
	}
	r := newRig(t)
	users := fallback("users")
	users.SetNamespace(r.namespace)
	check(t, env.Client.Create(t.Context(), users))
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.DefaultConfig = fallback("users")
	r.settle("it is installed", settled)
	if created := r.inventory().Data.DefaultConfigCreated; created == nil || !created.Found || created.UID != "" {
		t.Errorf("default configuration: %+v", created)
	}
	r.in.Target = r.target("1.1.0", configMapFiles("a", "2"))
	r.in.Target.DefaultConfig = fallback("other")
	r.settle("it is upgraded", settled)
	if r.get(configMaps, "other") != nil {
		t.Error("another one was made in place of the user's")
	}
	check(t, env.Client.Delete(t.Context(), r.get(configMaps, "users")))
	r.in.Target = r.target("1.2.0", configMapFiles("a", "3"))
	r.in.Target.DefaultConfig = fallback("users")
	r.settle("it is upgraded again", settled)
	if r.get(configMaps, "users") != nil {
		t.Error("the user's deletion was taken back")
	}
	users = fallback("users")
	users.SetNamespace(r.namespace)
	check(t, env.Client.Create(t.Context(), users))
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if r.get(configMaps, "users") == nil {
		t.Error("the user's object was removed")
	}
}

// TestDefaultConfigOfAnOvertakenAttempt: what an attempt had made, or only meant to make, when another one overtook it
// is told apart, so that there is one default configuration, and it goes with the installation.
func TestDefaultConfigOfAnOvertakenAttempt(t *testing.T) {
	t.Parallel()
	fallback := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"key": "1"},
		}}
	}
	for name, tc := range map[string]struct {
		made bool
		want string
	}{
		"Made":  {true, "first"},
		"Meant": {false, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			// Until its Deployment is available, an attempt does not come to the default configuration.
			r.in.Target = r.target("1.0.0", map[string]string{"d.yaml": deployment("1")})
			r.in.Target.DefaultConfig = fallback("first")
			r.settle("it waits for health", func(out engine.Outcome) bool {
				return r.inventory().Data.DefaultConfigCreated != nil && len(out.Waiting) > 0
			})
			if tc.made {
				// As if the process had been killed between the two requests.
				first := fallback("first")
				first.SetNamespace(r.namespace)
				first.SetAnnotations(map[string]string{engine.DefaultConfigAnnotation: r.in.UID})
				check(t, env.Client.Create(t.Context(), first))
			}
			r.start(nil)
			r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
			r.in.Target.DefaultConfig = fallback("second")
			r.settle("it is installed", settled)
			for _, one := range []string{"first", "second"} {
				if got := r.get(configMaps, one) != nil; got != (one == tc.want) {
					t.Errorf("%s is there: %v, want %s", one, got, tc.want)
				}
			}
			created := r.inventory().Data.DefaultConfigCreated
			if created.Name != tc.want || created.UID == "" {
				t.Errorf("recorded is %+v, want %s", created, tc.want)
			}
			r.in.Deleting, r.in.Target = true, nil
			r.settle("it is gone", done)
			err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: tc.want}, fallback(""))
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%s is left: %v", tc.want, err)
			}
		})
	}
}
