package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

var crds = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// crdModule is a module with a CRD of its own kind, and one object of that kind that belongs to the module.
type crdModule struct {
	group string
	kind  schema.GroupVersionKind
	files map[string]string
}

func newCRDModule(r *rig) crdModule {
	group := r.namespace + ".example.com"
	crd := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group)
	return crdModule{
		group: group, kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"},
		files: map[string]string{
			"crd.yaml": crd, "a.yaml": configMap("a", "1"),
			"thing.yaml": fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: own}\nspec: {size: 1}\n", group),
		},
	}
}

func (m crdModule) target(r *rig, version string) *engine.Target {
	target := r.target(version, m.files)
	target.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Group: m.group, Version: "v1", Kind: "Thing"}}}
	target.DefaultConfig = m.thing("", "default")
	return target
}

func (m crdModule) thing(namespace, name string) *unstructured.Unstructured {
	thing := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	thing.SetGroupVersionKind(m.kind)
	thing.SetNamespace(namespace)
	thing.SetName(name)
	return thing
}

// TestModuleWithData is the life of a module with a CRD: its objects follow the CRD, the default configuration is
// created once, and users' data blocks the deletion.
func TestModuleWithData(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	out := r.settle("it is installed", settled)
	if r.get(m.kind, "own") == nil || r.get(m.kind, "default") == nil {
		t.Fatal("the CRD's objects are missing")
	}
	t.Logf("a module with a CRD: %d writes of the inventory", r.records.writes)
	if created := out.Inventory.Data.DefaultConfigCreated; created == nil || created.UID == "" || created.Namespace != r.namespace {
		t.Errorf("default configuration: %+v", created)
	}

	// It is the user's: neither healed nor created again, nor pruned.
	check(t, env.Client.Delete(t.Context(), r.get(m.kind, "default")))
	r.in.Target = m.target(r, "1.0.1")
	r.settle("it is upgraded", settled)
	if r.get(m.kind, "default") != nil {
		t.Error("the default configuration came back")
	}

	data := m.thing(r.namespace, "mine")
	check(t, env.Client.Create(t.Context(), data))
	r.in.Deleting, r.in.Target = true, nil
	out = r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/mine")
	want := []modulesv1.DeletionBlocker{{Group: m.group, Kind: "Thing", Count: 1, Examples: []string{r.namespace + "/mine"}}}
	if diff := cmp.Diff(want, out.Deletion.BlockedBy); diff != "" {
		t.Error(diff)
	}
	if len(r.present()) != 1 || r.inventory().Data.Phase != modulesv1.PhaseInstalled {
		t.Error("something went in spite of users' data")
	}
	check(t, env.Client.Delete(t.Context(), data))
	r.settle("it is gone", done)
	if r.get(crds, "things."+m.group) != nil || len(r.present()) > 0 || r.inventory() != nil {
		t.Error("something is left")
	}
}

// TestDefaultConfigIsCreatedLater: who did without the default configuration gets it when the spec, or the template,
// changes its mind, and no more than once.
func TestDefaultConfigIsCreatedLater(t *testing.T) {
	t.Parallel()
	fallback := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "fallback"}, "data": map[string]any{"key": "1"},
	}}
	for name, tc := range map[string]struct {
		reason        string
		before, after func(*rig)
	}{
		"Spec": {
			"the spec takes Ignore back",
			func(r *rig) {
				r.in.Target.DefaultConfig = fallback
				r.in.Spec.Config = &modulesv1.InstallationConfig{DefaultConfig: modulesv1.DefaultConfigIgnore}
			},
			func(r *rig) { r.in.Spec.Config = nil },
		},
		"Template": {
			"the template gets one",
			func(*rig) {}, func(r *rig) { r.in.Target.DefaultConfig = fallback },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
			tc.before(r)
			r.settle("it is installed", settled)
			if diff := cmp.Diff([]string{"a"}, r.present()); diff != "" {
				t.Fatalf("%s: %s", tc.reason, diff)
			}
			r.synced()
			tc.after(r)
			r.settle("it is created", func(out engine.Outcome) bool { return settled(out) && r.get(configMaps, "fallback") != nil })
			if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			check(t, env.Client.Delete(t.Context(), r.get(configMaps, "fallback")))
			writes := r.records.writes
			for range 3 {
				r.round()
			}
			if r.get(configMaps, "fallback") != nil || r.records.writes != writes {
				t.Errorf("%s: it is created again, or %d more writes", tc.reason, r.records.writes-writes)
			}
		})
	}
}

// TestUsersDataIsRecordedWhileHeld: what the template of the installed release says about users' data counts although
// the installation waits for something else.
func TestUsersDataIsRecordedWhileHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target = target
	r.settle("it is installed", settled)
	target.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}}}
	r.in.Target, r.in.Current = nil, target
	r.round()
	if diff := cmp.Diff(target.ManagedResources, r.inventory().Data.Deletion.ManagedResources); diff != "" {
		t.Error(diff)
	}
	writes := r.records.writes
	r.round()
	if r.records.writes != writes || r.inventory().Data.Current.Version != "1.0.0" {
		t.Errorf("%d more writes for nothing: %+v", r.records.writes-writes, r.inventory().Data)
	}
}

// TestCRDWithDataIsNotPruned: a release without the CRD does not take users' data along.
func TestCRDWithDataIsNotPruned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	data := m.thing(r.namespace, "mine")
	check(t, env.Client.Create(t.Context(), data))
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.fails(engine.StagePrune, modulesv1.PruneBlockedReason, "Thing")
	if r.get(m.kind, "mine") == nil || r.get(m.kind, "own") == nil {
		t.Error("objects went")
	}
}

// TestUnknownBlocks: users' data that cannot be counted blocks like data that is there.
func TestUnknownBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grant(rule{"", "configmaps", "*"})
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}}}
	r.settle("it is installed", settled)
	r.in.Deleting = true
	out := r.fails(engine.StageDelete, modulesv1.DeletionUnknownReason, "Secret")
	if len(out.Deletion.Unknown) != 1 || len(r.present()) != 1 {
		t.Errorf("unknown %v, present %v", out.Deletion.Unknown, r.present())
	}
	r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	r.settle("it is let go of", done)
	object := r.get(configMaps, "a")
	if object == nil || len(object.GetLabels())+len(object.GetManagedFields()) > 0 || r.inventory() != nil {
		t.Errorf("orphan: %v", object)
	}
}

// TestDeletionWaits: an object with a finalizer is waited for, and stays in the inventory until it is gone.
func TestDeletionWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("it is installed", settled)
	finalizers := func(list string) {
		check(t, env.Client.Patch(t.Context(), r.get(configMaps, "a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`))))
	}
	finalizers(`["example.com/wait"]`)
	r.in.Deleting = true
	out := r.round()
	if out.Done || len(out.Waiting) != 1 || out.Again == 0 {
		t.Errorf("outcome: %+v", out)
	}
	if diff := cmp.Diff([]string{"a:Deleting"}, r.members()); diff != "" {
		t.Error(diff)
	}
	r.start(nil)
	finalizers("null")
	r.settle("it is gone", done)
}

// TestDeletionWithoutRecord: an installation that never got anywhere has nothing to leave behind.
func TestDeletionWithoutRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Deleting = true
	if out := r.round(); !out.Done {
		t.Errorf("outcome: %+v", out)
	}
}

// rule is a right: group, resource and verb.
type rule struct{ group, resource, verb string }

// grant makes the ServiceAccount deployer with rights in the namespace; granting again replaces them.
func (r *rig) grant(rules ...rule) {
	r.t.Helper()
	const account = "deployer"
	var all []any
	for _, one := range rules {
		all = append(all, map[string]any{
			"apiGroups": []any{one.group}, "resources": []any{one.resource}, "verbs": []any{one.verb},
		})
	}
	const rbac = "rbac.authorization.k8s.io"
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "ServiceAccount"},
		{"apiVersion": rbac + "/v1", "kind": "Role", "rules": all},
		{
			"apiVersion": rbac + "/v1", "kind": "RoleBinding",
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "Role", "name": account},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": r.namespace}},
		},
	} {
		object["metadata"] = map[string]any{"name": account, "namespace": r.namespace}
		u := &unstructured.Unstructured{Object: object}
		err := env.Client.Create(r.t.Context(), u)
		if apierrors.IsAlreadyExists(err) && u.GetKind() == "Role" {
			existing := r.get(u.GroupVersionKind(), account)
			existing.Object["rules"] = all
			err = env.Client.Update(r.t.Context(), existing)
		}
		if !apierrors.IsAlreadyExists(err) {
			check(r.t, err)
		}
	}
}

// TestIdentity: a tenant without rights gets an error that says so; one who may not watch is served less often.
func TestIdentity(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grant(rule{"", "configmaps", "get"})
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.fails(engine.StageApply, modulesv1.ForbiddenReason, "deployer")
	r.grant(rule{"", "configmaps", "get"}, rule{"", "configmaps", "create"}, rule{"", "configmaps", "patch"}, rule{"", "configmaps", "delete"})
	r.settle("it is installed", settled)
	out := r.settle("it is told that nobody can watch", func(out engine.Outcome) bool { return len(out.Unwatched) == 1 })
	if healed(out) > 0 {
		t.Errorf("healed %d", healed(out))
	}
	if calls := r.calls(func() { r.round() }); len(calls) > 0 {
		t.Errorf("asked: %v", calls)
	}
	check(t, env.Client.Patch(t.Context(), r.get(configMaps, "a"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"drift"}}`))))
	r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultInterval))
	r.settle("it is healed at the interval", func(out engine.Outcome) bool { return healed(out) == 1 })
	if slices.Contains(r.members(), "a:Pending") {
		t.Error("a member is pending")
	}
	r.in.Deleting = true
	r.settle("it is gone", done)
}

// TestConcurrentEdit: an inventory that somebody else wrote meanwhile is read again, and nothing is done by the old one.
func TestConcurrentEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	stranger := r.inventory()
	stranger.Labels = map[string]string{"edited": "yes"}
	check(t, r.client.Update(t.Context(), stranger))
	r.in.Target = r.target("2.0.0", configMapFiles("b", "1"))
	r.settle("it is upgraded", settled)
	if r.inventory().Labels["edited"] != "yes" {
		t.Error("the edit is lost")
	}
}

// TestEarlierInstallation: the inventory of an installation of the same name with another UID is not gone by.
func TestEarlierInstallation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	r.in.UID = "another"
	_, err := r.engine.Reconcile(t.Context(), r.in)
	if found := failure.Of(err); err == nil || found.Disposition != failure.Waits {
		t.Errorf("round: %v", err)
	}
	r.in.Deleting = true
	if out := r.round(); !out.Done || len(r.present()) != 1 || r.inventory() == nil {
		t.Errorf("outcome: %+v", out)
	}
}

// TestParts: an engine without a part says so.
func TestParts(t *testing.T) {
	t.Parallel()
	if _, err := engine.New(engine.Parts{}, engine.Options{}); err == nil || errors.Is(err, errDead) {
		t.Errorf("made of nothing: %v", err)
	}
}
