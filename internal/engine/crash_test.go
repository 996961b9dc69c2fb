package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
)

// maxEffects is more than any of the operations has.
const maxEffects = 40

// TestCrash kills the process at every effect that installing, upgrading, going back and deleting has, just before it
// and just after it, and starts another one: the inventory never lacks an object that is there, nothing goes that is
// wanted, and all ends as if nothing had happened.
func TestCrash(t *testing.T) {
	t.Parallel()
	one := releaseFiles("a=1", "b=1", "c=1")
	two := releaseFiles("a=2", "b=1", "d=1")
	for name, tc := range map[string]struct {
		reason  string
		from    map[string]string
		to      map[string]string
		deleted bool
		// then is what the next process is to do; the same when it is nil.
		then map[string]string
	}{
		"Install":           {reason: "a first installation goes on", to: one},
		"Upgrade":           {reason: "an upgrade goes on", from: one, to: two},
		"UpgradeUndone":     {reason: "an upgrade is undone by another choice", from: one, to: two, then: one},
		"InstallRedirected": {reason: "another release is chosen meanwhile", to: one, then: two},
		"Delete":            {reason: "a deletion goes on", from: one, deleted: true},
		"DeleteUpgrading":   {reason: "what is half upgraded is deleted", from: one, to: two, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					if at > maxEffects {
						t.Fatal("there is no end of effects")
					}
					if !crashOnce(t, fmt.Sprintf("%s: %s: killed at effect %d, after it: %v", name, tc.reason, at, after), crash{
						from: tc.from, to: tc.to, then: tc.then, deleted: tc.deleted, mortal: &mortal{at: at, after: after},
					}) {
						t.Logf("%d effects, after them: %v", at-1, after)
						break
					}
				}
			}
		})
	}
}

type crash struct {
	from, to, then map[string]string
	deleted        bool
	mortal         *mortal
}

// crashOnce says whether the process died before it was done.
func crashOnce(t *testing.T, what string, c crash) bool {
	t.Helper()
	r := newRig(t)
	defer r.halt()
	if c.from != nil {
		r.in.Target = r.target("1.0.0", c.from)
		r.settle("it is installed", settled)
	}
	if c.to != nil {
		r.in.Target = r.target("2.0.0", c.to)
	}
	deletesLate := c.deleted && c.to != nil
	r.in.Deleting = c.deleted && !deletesLate
	r.start(c.mortal)
	r.untilDead()
	died := c.mortal.isDead()
	r.wantNothingOrphaned(what)
	if c.from != nil && !c.deleted {
		for name := range c.from {
			if _, both := c.to[name]; both && r.labelled()[objectOf(name)].Object == nil {
				t.Errorf("%s: %s went, and is wanted", what, name)
			}
		}
	}
	r.start(nil)
	r.in.Deleting = c.deleted
	if c.deleted {
		r.settle(what, done)
		if left := r.labelled(); len(left) > 0 || r.inventory() != nil {
			t.Errorf("%s: left: %v %v", what, left, r.members())
		}
		return died
	}
	want := c.to
	if c.then != nil {
		want = c.then
		r.in.Target = r.target("1.0.0", c.then)
	}
	r.settle(what, settled)
	r.wantExactly(what, want)
	return died
}

// untilDead does rounds until the process is dead, or has nothing more to do.
func (r *rig) untilDead() {
	r.t.Helper()
	for range maxEffects {
		out, err := r.engine.Reconcile(r.t.Context(), r.in)
		if r.records.mortal.isDead() || err == nil && (out.Done || settled(out)) {
			return
		}
	}
	r.t.Fatal("it neither dies nor comes to an end")
}

var podTemplates = schema.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}

// releaseFiles are ConfigMaps, and a PodTemplate, which is of a later stage, for those named b.
func releaseFiles(pairs ...string) map[string]string {
	files := map[string]string{}
	for _, pair := range pairs {
		name, value := pair[:1], pair[2:]
		files[name] = configMap(name, value)
		if name == "b" {
			files[name] = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: b}\ntemplate: {spec: {containers: [{name: c, image: i}]}}\n"
		}
	}
	named := map[string]string{}
	for name, content := range files {
		named[name+".yaml"] = content
	}
	return named
}

func objectOf(file string) string { return file[:1] }

// labelled are the installation's objects, by their label.
func (r *rig) labelled() map[string]unstructured.Unstructured {
	r.t.Helper()
	found := map[string]unstructured.Unstructured{}
	for _, gvk := range []schema.GroupVersionKind{configMaps, podTemplates} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		check(r.t, env.Client.List(r.t.Context(), list, client.InNamespace(r.namespace),
			client.MatchingLabels{engine.Label: engine.InstallationID(r.in.Name, r.namespace)}))
		for _, item := range list.Items {
			found[item.GetName()] = item
		}
	}
	return found
}

// wantNothingOrphaned: every object of the installation is in its inventory.
func (r *rig) wantNothingOrphaned(what string) {
	r.t.Helper()
	listed := map[string]bool{}
	if record := r.inventory(); record != nil {
		for _, m := range record.Data.Members {
			listed[m.Name] = true
		}
	}
	for name := range r.labelled() {
		if !listed[name] {
			r.t.Errorf("%s: %s is there, and not in the inventory", what, name)
		}
	}
}

// wantExactly: the cluster holds the files, and the inventory lists them as they are.
func (r *rig) wantExactly(what string, files map[string]string) {
	r.t.Helper()
	live := r.labelled()
	var want []string
	for name := range files {
		want = append(want, objectOf(name))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(live))); diff != "" {
		r.t.Errorf("%s: objects (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(want, r.members()); diff != "" {
		r.t.Errorf("%s: inventory (-want +got):\n%s", what, diff)
	}
	for _, m := range r.inventory().Data.Members {
		object := live[m.Name]
		if string(object.GetUID()) != m.UID || cluster.Fingerprint(&object, engine.Manager(r.in.UID)) != m.Fingerprint {
			r.t.Errorf("%s: the inventory does not know %s as it is", what, m.Name)
		}
		if object.GetKind() == "ConfigMap" {
			value, _, _ := unstructured.NestedString(object.Object, "data", "key")
			if files[m.Name+".yaml"] != configMap(m.Name, value) {
				r.t.Errorf("%s: %s holds %q", what, m.Name, value)
			}
		}
	}
}
