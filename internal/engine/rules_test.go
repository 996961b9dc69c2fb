package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// annotatedMap is a ConfigMap with one annotation.
func annotatedMap(name, value, annotation string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {%s}}\ndata: {key: %q}\n", name, annotation, value)
}

func (r *rig) edit(gvk schema.GroupVersionKind, name, patch string) {
	r.t.Helper()
	check(r.t, env.Client.Patch(r.t.Context(), r.get(gvk, name), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")))
}

func (r *rig) value(name string) any {
	r.t.Helper()
	found, _, _ := unstructured.NestedString(r.get(configMaps, name).Object, "data", "key")
	return found
}

// TestIgnoredObject: what a manifest says is not to be applied is not made, is not changed any more, and is let go of
// rather than removed.
func TestIgnoredObject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ignored := engine.SSAAnnotation + ": Ignore"
	r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1"), "c.yaml": annotatedMap("c", "1", ignored)})
	r.settle("it is installed", settled)
	if diff := cmp.Diff([]string{"a", "b"}, r.present()); diff != "" {
		t.Error(diff)
	}
	r.in.Target = r.target("2.0.0", map[string]string{"a.yaml": configMap("a", "2"), "b.yaml": annotatedMap("b", "2", ignored)})
	r.settle("it is upgraded", settled)
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
	if left := r.get(configMaps, "b"); left == nil || r.value("b") != "1" || left.GetLabels()[engine.Label] != "" {
		t.Errorf("left: %v", left)
	}
}

// TestIgnoredInTheCluster: a member with the annotation is left as it is, by healing and by a release, and stays in the
// end.
func TestIgnoredInTheCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("it is installed", settled)
	r.synced()
	r.edit(configMaps, "a", `{"metadata":{"annotations":{"`+engine.SSAAnnotation+`":"Ignore"}},"data":{"key":"edited"}}`)
	r.edit(configMaps, "b", `{"data":{"key":"edited"}}`)
	r.settle("the other one is healed", func(out engine.Outcome) bool { return healed(out) == 1 })
	r.in.Target = r.target("2.0.0", configMapFiles("a", "2", "b", "2"))
	r.settle("it is upgraded", func(out engine.Outcome) bool { return settled(out) && out.Inventory.Data.Current.Version == "2.0.0" })
	if r.value("a") != "edited" || r.value("b") != "2" {
		t.Errorf("a: %v, b: %v", r.value("a"), r.value("b"))
	}
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if diff := cmp.Diff([]string{"a"}, r.present()); diff != "" {
		t.Error(diff)
	}
}

// TestOnceObject: what is only to be created is left as it is from then on, made anew when it is gone, and left to whoever
// has made it before.
func TestOnceObject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := func(value string) map[string]string {
		return map[string]string{
			"a.yaml":      configMap("a", value),
			"made.yaml":   annotatedMap("made", value, engine.SSAAnnotation+": IfNotPresent"),
			"theirs.yaml": annotatedMap("theirs", value, engine.SSAAnnotation+": IfNotPresent"),
		}
	}
	r.byHand(configMap("theirs", "theirs"))
	r.in.Target = r.target("1.0.0", files("1"))
	r.settle("it is installed", settled)
	if diff := cmp.Diff([]string{"a", "made"}, r.members()); diff != "" {
		t.Error(diff)
	}
	r.synced()
	r.edit(configMaps, "made", `{"data":{"key":"edited"}}`)
	r.in.Target = r.target("2.0.0", files("2"))
	plan, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if plan.Update != 1 || plan.Delete != 0 {
		t.Errorf("plan: %+v", plan)
	}
	r.settle("it is upgraded", func(out engine.Outcome) bool { return settled(out) && r.inventory().Data.Current.Version == "2.0.0" })
	for range 3 {
		if out := r.round(); healed(out) > 0 {
			t.Errorf("healed: %v", out.Notes)
		}
	}
	if r.value("made") != "edited" || r.value("theirs") != "theirs" {
		t.Errorf("made %v, theirs %v", r.value("made"), r.value("theirs"))
	}
	check(t, env.Client.Delete(t.Context(), r.get(configMaps, "made")))
	r.settle("it is made anew", func(out engine.Outcome) bool { return healed(out) == 1 })
	if r.value("made") != "2" {
		t.Errorf("made %v", r.value("made"))
	}
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if diff := cmp.Diff([]string{"theirs"}, r.present()); diff != "" {
		t.Error(diff)
	}
}

// TestForcedObject: one object may be made anew, rather than all.
func TestForcedObject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secret := func(value string) map[string]string {
		return map[string]string{"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {" + engine.ForceAnnotation + ": enabled}}\nimmutable: true\nstringData: {key: " + value + "}\n"}
	}
	r.in.Target = r.target("1.0.0", secret("one"))
	r.settle("it is installed", settled)
	before := member(r, "s").UID
	r.in.Target = r.target("2.0.0", secret("two"))
	r.settle("it is made anew", settled)
	if after := member(r, "s").UID; after == before {
		t.Error("it is the same object")
	}
}

// TestUnknownAnnotationValue: a value that means nothing is told, rather than taken for none.
func TestUnknownAnnotationValue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": annotatedMap("a", "1", engine.SSAAnnotation+": Merge")})
	r.fails(engine.StageBuild, modulesv1.BuildFailedReason, "its value may be Ignore or IfNotPresent")
}

// TestOthersFields: a field that others own is set when the object is made, and never again: neither by a release, nor by
// healing, nor when the rule is new; the plan does not count it.
func TestOthersFields(t *testing.T) {
	t.Parallel()
	deployment := func(replicas int, image string) map[string]string {
		return map[string]string{"d.yaml": fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: %s}]}}}\n", replicas, image)}
	}
	applied := func(out engine.Outcome) bool { return out.Inventory.Data.Attempt.AppliedAt != nil }
	replicas := func(r *rig) int64 {
		found, _, _ := unstructured.NestedInt64(r.get(deployments, "d").Object, "spec", "replicas")
		return found
	}
	rule := &modulesv1.DriftPolicy{Ignore: []modulesv1.DriftIgnore{{
		Target: &modulesv1.PatchTarget{Kind: "Deploy.*", LabelSelector: "!none"}, Paths: []string{"/spec/replicas"},
	}}}
	for name, fromTheStart := range map[string]bool{"FromTheStart": true, "Later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if fromTheStart {
				r.in.Spec.Drift = rule
			}
			r.in.Target = r.target("1.0.0", deployment(2, "one"))
			r.settle("it is applied", applied)
			if got := replicas(r); got != 2 {
				t.Fatalf("made with %d replicas", got)
			}
			r.in.Spec.Drift = rule
			r.settle("the rule counts", func(out engine.Outcome) bool { return applied(out) })
			if got := replicas(r); got != 2 {
				t.Fatalf("the rule has changed replicas to %d", got)
			}
			r.synced()
			r.edit(deployments, "d", `{"spec":{"replicas":7}}`)
			r.in.Target = r.target("2.0.0", deployment(3, "one"))
			if plan, err := r.engine.Plan(t.Context(), r.in); err != nil || plan.Update != 0 {
				t.Errorf("plan: %+v, %v", plan, err)
			}
			r.in.Target = r.target("3.0.0", deployment(3, "two"))
			r.settle("it is upgraded", func(out engine.Outcome) bool {
				return applied(out) && out.Inventory.Data.Current.Version == "3.0.0"
			})
			r.synced()
			r.edit(deployments, "d", `{"metadata":{"labels":{"`+engine.InstallationLabel+`":"edited"}}}`)
			r.settle("it is healed", func(out engine.Outcome) bool { return healed(out) == 1 })
			if got := replicas(r); got != 7 {
				t.Errorf("%d replicas, where somebody wanted 7", got)
			}
		})
	}
}

// TestItemsCannotBeIgnored: a pointer to an item of a list is refused with words, as others would have its place then.
func TestItemsCannotBeIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Spec.Drift = &modulesv1.DriftPolicy{Ignore: []modulesv1.DriftIgnore{{Paths: []string{"/spec/ports/0"}}}}
	r.in.Target = r.target("1.0.0", map[string]string{"s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"})
	r.fails(engine.StageBuild, modulesv1.BuildFailedReason, "item of a list")
}
