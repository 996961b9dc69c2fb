package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

var jobs = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

func jobFile(ttl string) map[string]string {
	return map[string]string{"job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec: {" + ttl + "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n"}
}

// complete ends a Job well, as its controller does.
func (r *rig) complete(name string) {
	r.t.Helper()
	status := `{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:01Z","succeeded":1,"conditions":[
		{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},
		{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"}]}}`
	check(r.t, env.Client.Status().Patch(r.t.Context(), r.get(jobs, name), client.RawPatch(types.MergePatchType, []byte(status)), client.FieldOwner("kube-controller-manager")))
}

// TestEndedJob: a Job that ended well, and was removed when its time to live was over, is no drift, and healthy; another
// release makes it anew. One without a time to live is drift.
func TestEndedJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ttl string
		// early says that it goes before anybody looked at its health.
		early, restart bool
		want           bool
	}{
		"Removed":      {ttl: "ttlSecondsAfterFinished: 0, "},
		"RemovedEarly": {ttl: "ttlSecondsAfterFinished: 0, ", early: true},
		"Restarted":    {ttl: "ttlSecondsAfterFinished: 0, ", restart: true},
		"ByHand":       {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.in.Target = r.target("1.0.0", jobFile(tc.ttl))
			r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
			r.synced()
			r.complete("migrate")
			if !tc.early {
				r.settle("it is installed", settled)
			}
			uid := r.get(jobs, "migrate").GetUID()
			check(t, env.Client.Delete(t.Context(), r.get(jobs, "migrate"), client.PropagationPolicy("Background")))
			eventually(t, "it is gone", func() bool { return r.get(jobs, "migrate") == nil })
			if tc.restart {
				r.start(nil)
			}
			if tc.want {
				r.settle("it is made again", func(engine.Outcome) bool { return r.get(jobs, "migrate") != nil })
				return
			}
			r.settle("it is at rest", settled)
			r.in.Verify = true
			for range 3 {
				r.round()
			}
			r.in.Verify = false
			if r.get(jobs, "migrate") != nil {
				t.Fatal("it runs again")
			}
			if !member(r, "migrate").Ended {
				t.Error("the record does not know that it has ended")
			}
			r.in.Target = r.target("2.0.0", jobFile(tc.ttl+"backoffLimit: 3, "))
			r.settle("it is made for the next release", func(engine.Outcome) bool { return r.get(jobs, "migrate") != nil })
			if anew := r.get(jobs, "migrate").GetUID(); anew == uid || member(r, "migrate").Ended {
				t.Errorf("job %s, member %+v", anew, member(r, "migrate"))
			}
		})
	}
}

// TestEndedJobTakenBack: an upgrade that drops a Job which has run, and is taken back before it was applied in full, does
// not run it again.
func TestEndedJobTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.target("1.0.0", jobFile("ttlSecondsAfterFinished: 0, "))
	r.in.Target = first
	r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
	r.synced()
	r.complete("migrate")
	r.settle("it is installed", settled)
	check(t, env.Client.Delete(t.Context(), r.get(jobs, "migrate"), client.PropagationPolicy("Background")))
	eventually(t, "it is gone", func() bool { return r.get(jobs, "migrate") == nil })
	r.settle("it is at rest", settled)
	r.in.Target = r.target("2.0.0", map[string]string{"bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, namespace: " + r.namespace + "-missing}\n"})
	r.fails(engine.StageApply, modulesv1.ApplyFailedReason, "missing")
	r.in.Target = first
	r.settle("it is taken back", func(out engine.Outcome) bool { return settled(out) || r.get(jobs, "migrate") != nil })
	if r.get(jobs, "migrate") != nil {
		t.Error("it runs again")
	}
}

// TestDefaultConfigOfNoKind: a default configuration whose kind nobody serves is waited for less and less often, and fails
// the installation in the end.
func TestDefaultConfigOfNoKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.DefaultConfig = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nobody.example.com/v1", "kind": "Setting", "metadata": map[string]any{"name": "default"},
	}}
	out := r.settle("it waits", func(out engine.Outcome) bool { return len(out.Waiting) == 1 })
	before := out.Again
	r.clock.SetTime(r.clock.Now().Add(2 * time.Minute))
	if out := r.round(); out.Again < 4*before {
		t.Errorf("it is asked for every %s, and later every %s", before, out.Again)
	}
	r.clock.SetTime(r.clock.Now().Add(4 * time.Minute))
	r.fails(engine.StageApply, modulesv1.ApplyFailedReason, "Setting.nobody.example.com in version v1 is not served")
}
