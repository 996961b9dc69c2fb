package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func deployment(image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: %q}]}
`, image)
}

// report plays the controller of Deployments.
func (r *rig) report(available bool) {
	r.t.Helper()
	object := r.get(deployments, "web")
	count := int64(0)
	status := "False"
	if available {
		count, status = 1, "True"
	}
	object.Object["status"] = map[string]any{
		"observedGeneration": object.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1),
		"readyReplicas": count, "availableReplicas": count,
		"conditions": []any{
			map[string]any{"type": "Available", "status": status},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}
	check(r.t, env.Client.Status().Update(r.t.Context(), object))
}

// TestChangesWhileAMemberIsReadAreSeen: a member that changes after it was read, and before that is noted, is read again.
func TestChangesWhileAMemberIsReadAreSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var once sync.Once
	var armed atomic.Bool
	r.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if armed.Load() && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/deployments/web") {
				once.Do(func() {
					r.report(true)
					now := r.get(deployments, "web")
					testenv.Eventually(t, "the watch has seen it", func(context.Context) (bool, string) {
						meta, _ := r.watcher.State(r.in.Key(), cluster.Ref{GVK: deployments, Namespace: now.GetNamespace(), Name: "web"})
						return meta != nil && meta.ResourceVersion == now.GetResourceVersion(), fmt.Sprintf("%+v", meta)
					})
				})
			}
			return answer, err
		})
	}
	r.start(nil)
	r.in.Target = r.target("1.0.0", map[string]string{"web.yaml": deployment("one")})
	r.round()
	r.synced()
	r.round()
	r.report(false)
	armed.Store(true)
	r.settle("it is healthy", settled)
}

// TestHealth: nobody waits; what is not healthy is told, read again only when it changed, and an error once time is up.
func TestHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", map[string]string{"web.yaml": deployment("one"), "old.yaml": configMap("old", "1")})
	out := r.round()
	if out.Healthy || out.Settled || len(out.Waiting) != 1 || out.Waiting[0].Ref.Name != "web" || out.Again == 0 {
		t.Fatalf("outcome: %+v", out)
	}
	if out.Inventory.Data.Current == nil || out.Inventory.Data.Attempt.Stage != modulesv1.StageWaiting {
		t.Errorf("record: %+v", out.Inventory.Data)
	}
	r.synced()
	r.round()
	if calls := r.calls(func() { r.round() }); len(calls) > 0 {
		t.Errorf("nothing changed, and it was asked: %v", calls)
	}
	r.clock.SetTime(r.clock.Now().Add(6 * time.Minute))
	r.fails(engine.StageHealth, modulesv1.HealthCheckFailedReason, "web")
	r.report(true)
	out = r.settle("it is healthy", settled)
	if len(out.Waiting) > 0 {
		t.Errorf("waiting: %v", out.Waiting)
	}

	// Nothing is pruned before the next release is healthy, and it does not become so.
	r.in.Target = r.target("2.0.0", map[string]string{"web.yaml": deployment("two")})
	r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current.Version == "2.0.0" })
	r.report(false)
	for range 3 {
		r.round()
	}
	if r.get(configMaps, "old") == nil {
		t.Error("pruned before it was healthy")
	}
	r.report(true)
	r.settle("it is upgraded", settled)
	if r.get(configMaps, "old") != nil {
		t.Error("not pruned")
	}
}

// TestHealthExpressions: the release says how its kinds' health is told.
func TestHealthExpressions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "off"))
	r.in.Target.Health = []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "ConfigMap", Current: "has(data.ready)"}}
	if out := r.round(); out.Healthy {
		t.Fatal("it is healthy without saying so")
	}
	r.synced()
	check(t, env.Client.Patch(t.Context(), r.get(configMaps, "a"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"ready":"yes"}}`))))
	r.settle("it says so", settled)
}

// TestHealthCost: a round begins no evaluation once expressions have cost enough, and the next one goes on.
func TestHealthCost(t *testing.T) {
	t.Parallel()
	const members, parallel = 20, 8
	r := newRig(t)
	var files []string
	for i := range members {
		files = append(files, fmt.Sprintf("a%02d", i), "1")
	}
	r.in.Target = r.target("1.0.0", configMapFiles(files...))
	r.settle("it is installed", settled)
	r.in.Target.Health = []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "ConfigMap", Current: "data.all(k, data[k] != '')"}}
	r.healthCost = 1
	r.start(nil)
	read := -1 // The first list is of metadata.
	testenv.Eventually(t, "all members are judged", func(ctx context.Context) (bool, string) {
		var out engine.Outcome
		var err error
		calls := r.calls(func() { out, err = r.engine.Reconcile(ctx, r.in) })
		// After the one object of a list that is judged, the cost is spent as well.
		read += calls["get"] + calls["list"]
		if calls["get"] > parallel {
			t.Errorf("a round read %d members after it had spent its time", calls["get"])
		}
		if err != nil && failure.Of(err).Disposition != failure.Waits {
			t.Error(err)
		}
		return err == nil && settled(out), fmt.Sprint(err)
	})
	if read != members {
		t.Errorf("each of %d members is judged once, not in %d reads", members, read)
	}
}

// TestHold: without a target, what is installed is kept, and an attempt goes on.
func TestHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target = target
	r.settle("it is installed", settled)
	r.synced()
	drift := func() {
		check(t, env.Client.Patch(t.Context(), r.get(configMaps, "a"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"drift"}}`))))
	}
	r.in.Target = nil
	drift()
	r.settle("it is seen", func(out engine.Outcome) bool { return len(out.Drifted) == 1 && healed(out) == 0 })
	r.in.Current = target
	r.settle("it is healed", func(out engine.Outcome) bool { return healed(out) == 1 })

	// A target that cannot be built changes nothing, and does not keep anybody from healing.
	r.in.Target = r.target("2.0.0", map[string]string{"empty.yaml": "# nothing\n"})
	r.fails(engine.StageBuild, modulesv1.EmptyRenderReason, "nothing to apply")
	drift()
	eventually(t, "it is healed all the same", func() bool {
		r.fails(engine.StageBuild, modulesv1.EmptyRenderReason, "")
		return cmp.Equal(r.get(configMaps, "a").Object["data"], map[string]any{"key": "1"})
	})
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
}

// TestPaused: nothing is applied, healed or pruned; it is told what would be.
func TestPaused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	r.synced()
	r.in.Spec.Management = modulesv1.ManagementPaused
	r.in.Target = r.target("2.0.0", configMapFiles("b", "1"))
	check(t, env.Client.Delete(t.Context(), r.get(configMaps, "a")))
	writes := r.records.writes
	calls := r.calls(func() {
		r.settle("it is seen", func(out engine.Outcome) bool { return len(out.Drifted) == 1 })
	})
	if len(calls) > 0 || r.records.writes != writes || len(r.present()) > 0 {
		t.Errorf("paused, and yet: %v, %v", calls, r.present())
	}
	r.in.Spec.Management = ""
	r.settle("it goes on", settled)
	if diff := cmp.Diff([]string{"b"}, r.present()); diff != "" {
		t.Error(diff)
	}
}

// TestDependsOn: a new attempt waits for what it depends on; what is installed is kept meanwhile.
func TestDependsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Self = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "redis"}}}
	r.in.Spec.DependsOn = []modulesv1.Dependency{{APIVersion: "v1", Kind: "ConfigMap", Name: "base", ReadyExpr: "dep.data.state == 'up'"}}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	out := r.fails(engine.StageDepend, modulesv1.DependencyNotReadyReason, "base")
	if len(out.Depends) != 1 || out.Depends[0].Namespace != r.namespace || r.inventory() != nil {
		t.Fatalf("outcome: %+v", out)
	}
	base := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "base", "namespace": r.namespace}, "data": map[string]any{"state": "down"},
	}}
	check(t, env.Client.Create(t.Context(), base))
	_, err := r.engine.Reconcile(t.Context(), r.in)
	if failure.Of(err).Disposition != failure.Waits {
		t.Fatalf("round: %v", err)
	}
	base.Object["data"] = map[string]any{"state": "up"}
	check(t, env.Client.Update(t.Context(), base))
	r.settle("it is installed", settled)
	// A dependency that breaks afterwards stops no healing.
	check(t, env.Client.Delete(t.Context(), base))
	r.settle("it stays installed", settled)
	r.in.Current, r.in.Target = r.in.Target, r.target("2.0.0", configMapFiles("a", "2"))
	r.fails(engine.StageDepend, modulesv1.DependencyNotReadyReason, "missing")
	if got := r.get(configMaps, "a").Object["data"]; !cmp.Equal(got, map[string]any{"key": "1"}) {
		t.Errorf("applied: %v", got)
	}
}

// TestPruneBound: when too many would go, none does.
func TestPruneBound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	half := int32(50)
	r.in.Spec.Prune = &modulesv1.PrunePolicy{MaxPercent: &half}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1", "c", "1"))
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.fails(engine.StagePrune, modulesv1.PruneBlockedReason, "2 of 3")
	if diff := cmp.Diff([]string{"a", "b", "c"}, r.present()); diff != "" {
		t.Error(diff)
	}
	r.in.Spec.Prune = nil
	r.settle("it is pruned", settled)
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
}

// TestPruneOnlyOurs: an object that is not provably ours any more is let go of, and stays.
func TestPruneOnlyOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1", "c", "1"))
	r.settle("it is installed", settled)
	// One lost the label, and one was made anew by somebody who copied it.
	check(t, env.Client.Patch(t.Context(), r.get(configMaps, "b"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))))
	copied := r.get(configMaps, "c")
	check(t, env.Client.Delete(t.Context(), copied))
	copied.SetUID("")
	copied.SetResourceVersion("")
	copied.SetManagedFields(nil)
	check(t, env.Client.Create(t.Context(), copied))
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.settle("it is upgraded", settled)
	if diff := cmp.Diff([]string{"a", "b", "c"}, r.present()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
}

// TestPlan: a plan counts, writes nothing, and its digest stands for what would be done.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "2", "c", "1", "d", "1"))
	plan, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if plan.Create != 2 || plan.Update != 1 || plan.Delete != 1 {
		t.Errorf("plan: %+v", plan)
	}
	var named []string
	for _, one := range plan.Objects {
		named = append(named, string(one.Change)+" "+one.Name)
	}
	if diff := cmp.Diff([]string{"Delete b", "Update a", "Create c", "Create d"}, named); diff != "" {
		t.Errorf("named: -want +got:\n%s", diff)
	}
	again, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	r.in.Spec.Config = &modulesv1.InstallationConfig{CommonMetadata: &modulesv1.CommonMetadata{Labels: map[string]string{"x": "y"}}}
	other, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if plan.Digest != again.Digest || plan.Digest == other.Digest {
		t.Errorf("digests: %s %s %s", plan.Digest, again.Digest, other.Digest)
	}
	r.in.Spec.Config, r.in.Spec.Prune = nil, &modulesv1.PrunePolicy{Enabled: new(false)}
	keeping, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if keeping.Create != 2 || keeping.Update != 1 || keeping.Delete != 0 || keeping.Digest == plan.Digest {
		t.Errorf("plan without pruning: %+v", keeping)
	}
	r.in.Spec.Prune = nil
	files := configMapFiles()
	for i := range modulesv1.MaxPlannedObjects + 10 {
		files[fmt.Sprint(i, ".yaml")] = configMap(fmt.Sprintf("n-%03d", i), "1")
	}
	r.in.Target = r.target("3.0.0", files)
	many, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if len(many.Objects) != modulesv1.MaxPlannedObjects || many.Create != modulesv1.MaxPlannedObjects+10 || many.Objects[1].Name != "b" {
		t.Errorf("names the first alone, what goes before the rest: %d of %+v", len(many.Objects), many)
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.present()); diff != "" {
		t.Error(diff)
	}
}

// TestConfig: another config is another attempt, and so are other variables.
func TestConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Variables = map[string]string{"who": "one"}
	r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": configMap("a", "${who}")})
	r.settle("it is installed", settled)
	r.in.Variables = map[string]string{"who": "two"}
	calls := r.calls(func() { r.settle("it follows", settled) })
	if got := r.get(configMaps, "a").Object["data"]; calls["apply"] != 1 || !cmp.Equal(got, map[string]any{"key": "two"}) {
		t.Errorf("applied by %v: %v", calls, got)
	}
	if data := r.inventory().Data; data.Previous != nil || len(data.History) != 2 {
		t.Errorf("record: %+v", data)
	}
}

// TestAttemptGoesOn: an attempt that began is brought to its end although the release chosen since cannot be built.
func TestAttemptGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grant(rule{"", "configmaps", "get"})
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.fails(engine.StageApply, modulesv1.ForbiddenReason, "")
	if diff := cmp.Diff([]string{"a:Pending"}, r.members()); diff != "" {
		t.Error(diff)
	}
	r.grant(rule{"", "configmaps", "*"})
	r.in.Current, r.in.Target = r.in.Target, r.target("2.0.0", map[string]string{"empty.yaml": "# nothing\n"})
	eventually(t, "it is installed all the same", func() bool {
		r.fails(engine.StageBuild, modulesv1.EmptyRenderReason, "")
		record := r.inventory()
		return record.Data.Attempt == nil && record.Data.Current.Version == "1.0.0"
	})
}
