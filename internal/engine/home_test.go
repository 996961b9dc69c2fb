package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// leave deletes the installation's namespace, and the rights in it, as the namespace controller does early on. Nobody
// runs here that would delete the rest.
func (r *rig) leave() {
	r.t.Helper()
	home := &unstructured.Unstructured{}
	home.SetGroupVersionKind(namespaces)
	home.SetName(r.namespace)
	check(r.t, env.Client.Delete(r.t.Context(), home))
	for _, kind := range []string{"RoleBinding", "Role"} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("rbac.authorization.k8s.io/v1")
		object.SetKind(kind)
		object.SetNamespace(r.namespace)
		object.SetName("deployer")
		check(r.t, env.Client.Delete(r.t.Context(), object))
	}
}

// grantIn lets the deployer do everything with ConfigMaps of another namespace.
func (r *rig) grantIn(namespace string) {
	r.t.Helper()
	for _, manifest := range []string{
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: deployer, namespace: %[1]s}\n" +
			"rules: [{apiGroups: [''], resources: [configmaps], verbs: ['*']}] # for %[2]s\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: deployer, namespace: %[1]s}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}\n" +
			"subjects: [{kind: ServiceAccount, name: deployer, namespace: %[2]s}]\n",
	} {
		object := &unstructured.Unstructured{}
		check(r.t, yaml.Unmarshal(fmt.Appendf(nil, manifest, namespace, r.namespace), &object.Object))
		check(r.t, env.Client.Create(r.t.Context(), object))
	}
}

// TestNamespaceGoesFirst: members in a namespace that is being deleted are its controller's to remove, whatever the
// installation is still allowed; those outside are removed, or keep the installation with words that say what helps. One
// that lets go of them anyway waits for the rights to do so for a while only.
func TestNamespaceGoesFirst(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]modulesv1.DeletionMode{"Block": modulesv1.DeletionBlock, "Orphan": modulesv1.DeletionOrphan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			outside := env.NewNamespace(t)
			r.grant(rule{"", "configmaps", "*"})
			r.grantIn(outside)
			r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
			r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: mode}
			files := configMapFiles("in", "1", "out", "1")
			files["out.yaml"] = strings.Replace(files["out.yaml"], "name: out", "name: out, namespace: "+outside, 1)
			r.in.Target = r.target("1.0.0", files)
			r.settle("it is installed", settled)
			r.leave()
			binding := &unstructured.Unstructured{}
			binding.SetAPIVersion("rbac.authorization.k8s.io/v1")
			binding.SetKind("RoleBinding")
			check(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: outside, Name: "deployer"}, binding))
			check(t, env.Client.Delete(t.Context(), binding))

			r.in.Deleting, r.in.Target = true, nil
			eventually(t, "what is outside keeps it", func() bool {
				_, err := r.engine.Reconcile(t.Context(), r.in)
				return err != nil && failure.Of(err).Reason == modulesv1.ForbiddenReason &&
					strings.Contains(err.Error(), outside+"/out") && strings.Contains(err.Error(), "is being deleted") &&
					!strings.Contains(err.Error(), r.namespace+"/in")
			})
			if mode == modulesv1.DeletionBlock {
				binding.SetResourceVersion("")
				binding.SetUID("")
				check(t, env.Client.Create(t.Context(), binding))
			} else {
				r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultTimeout))
			}
			r.settle("it is gone", done)
			if r.get(configMaps, "in") == nil || r.inventory() != nil {
				t.Error("what is in the namespace was removed from outside, or the inventory is left")
			}
			left := &unstructured.Unstructured{}
			left.SetGroupVersionKind(configMaps)
			err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: outside, Name: "out"}, left)
			if orphaned := mode == modulesv1.DeletionOrphan; client.IgnoreNotFound(err) != nil || (err == nil) != orphaned {
				t.Errorf("what is outside: %v, %v", left.GetLabels(), err)
			}
		})
	}
}

// TestDataOutlivesTheNamespace: users' data keeps the definition of its kind although the namespace goes; a module that
// has nothing outside of the namespace keeps nobody.
func TestDataOutlivesTheNamespace(t *testing.T) {
	t.Parallel()
	t.Run("Definition", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		m := newCRDModule(r)
		r.in.Target = m.target(r, "1.0.0")
		r.settle("it is installed", settled)
		elsewhere := env.NewNamespace(t)
		data := m.thing(elsewhere, "mine")
		check(t, env.Client.Create(t.Context(), data))
		r.grant(rule{"", "configmaps", "*"})
		r.leave()
		r.in.Deleting, r.in.Target = true, nil
		r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, elsewhere+"/mine")
		check(t, env.Client.Delete(t.Context(), data))
		// The default configuration is the namespace controller's, and no users' data.
		r.settle("it is gone", done)
		if r.get(crds, "things."+m.group) != nil {
			t.Error("the definition is left")
		}
	})
	t.Run("Nothing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.grant(rule{"", "configmaps", "*"})
		r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
		r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
		r.in.Target.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}}}
		r.settle("it is installed", settled)
		r.leave()
		r.in.Deleting, r.in.Target = true, nil
		if calls := r.calls(func() { r.settle("it is gone", done) }); calls["delete"] > 0 || calls["list"] > 1 {
			t.Errorf("asked: %v", calls)
		}
	})
}
