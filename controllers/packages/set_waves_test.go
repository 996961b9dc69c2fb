package packages_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// fleet is a plane with a repository of blueprints and three clusters, of which one is a canary. Each rollout in it has a package
// and a set of its own.
type fleet struct {
	*plane

	blueprints *upstream.Edited
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{plane: newPlane(t)}
	f.blueprints = f.repository("blueprints")
	f.blueprints.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "blueprints\n"}))
	for name, wave := range map[string]string{"canary": "first", "north": "second", "south": "second"} {
		f.cluster(name, map[string]string{"fleet": "yes", "late": "yes", "lent": "yes", "wave": wave})
	}
	f.mayRead()
	return f
}

// cluster makes a repository of the fleet.
func (f *fleet) cluster(name string, labels map[string]string) *upstream.Edited {
	f.Helper()
	made := f.upstreams.Repository(name + ".git")
	made.AcceptPushes()
	made.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	r := f.packages(name)
	r.Labels = labels
	f.create(f.source(name, f.server), r)
	return made
}

// rollout is a set of the fleet with waves.
type rollout struct {
	*fleet

	name string
	set  *packagesv1.PackageVariantSet
	// more are further files of the package.
	more map[string]string
}

// rollout makes a set whose package is at v1 everywhere, in a test of its own.
func (f *fleet) rollout(t *testing.T, name string, change ...func(*packagesv1.PackageVariantSetSpec)) *rollout {
	t.Helper()
	r := f.begin(t, name, nil, change...)
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	return r
}

// begin makes the set, with more files in its package.
func (f *fleet) begin(t *testing.T, name string, more map[string]string, change ...func(*packagesv1.PackageVariantSetSpec)) *rollout {
	t.Helper()
	own, plane := *f, *f.plane
	own.plane, plane.T = &plane, t
	r := &rollout{fleet: &own, name: name, more: more}
	r.release("v1", "1.0.0")
	r.set = &packagesv1.PackageVariantSet{ObjectMeta: r.meta(name), Spec: packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: name}, ServiceAccountName: "reader", DeletionGuard: hasty(packagesv1.DefaultGuardPercent),
		Targets: []packagesv1.Target{{
			RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}},
			Template: &packagesv1.VariantTemplate{
				Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}, DeletionPolicy: packagesv1.DeletionOrphan,
			},
		}},
		Rollout: &packagesv1.Rollout{Waves: []packagesv1.Wave{
			{Name: "first", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "first"}}},
			{Name: "second"},
		}},
	}}
	for _, c := range change {
		c(&r.set.Spec)
	}
	r.create(r.set)
	return r
}

// release publishes a revision of the package upstream.
func (r *rollout) release(revision, image string) {
	r.Helper()
	files := map[string]string{
		r.name + "/Kptfile":         strings.ReplaceAll(kptfile, "app", r.name),
		r.name + "/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image),
	}
	for name, content := range r.more {
		files[r.name+"/"+name] = content
	}
	r.blueprints.Tag(r.name+"/"+revision, r.blueprints.Commit("main", r.name+" "+revision, upstream.Text(files)), false)
}

// look is where the variants and the waves are, with all that was written seen.
func (r *rollout) look(ctx context.Context) (variants, waves string) {
	var list packagesv1.PackageVariantList
	if err := env.Client.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return err.Error(), ""
	}
	var all []string
	for _, v := range list.Items {
		if metav1.IsControlledBy(&v, r.set) {
			all = append(all, fmt.Sprintf("%s %s", v.Spec.Downstream.Repo, progress(&v)))
		}
	}
	slices.Sort(all)
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(r.set), r.set); err != nil {
		return err.Error(), ""
	}
	if s := r.set.Status.Rollout; s != nil {
		for _, w := range s.Waves {
			waves += strings.TrimSpace(fmt.Sprintf(", %s %s %s", w.Name, w.State, w.Reason))
		}
	}
	return strings.Join(all, ", "), strings.TrimPrefix(waves, ", ")
}

// progress is the revision that a variant is to be made of, with a label of the template, and whether that is published.
func progress(v *packagesv1.PackageVariant) string {
	text := fmt.Sprintf("v%d", v.Spec.Upstream.Revision)
	if v.Spec.Upstream.Branch != "" {
		text = v.Spec.Upstream.Branch
	}
	if label := v.Spec.Labels["edit"]; label != "" {
		text += " " + label
	}
	switch {
	case v.Spec.Upstream.Commit == "":
		return text + " not held"
	case v.Status.ObservedGeneration != v.Generation || !conditions.IsReady(v):
		return text + " " + strings.TrimSpace(conditions.GetReason(v, "Ready"))
	case v.Status.Change != nil:
		return text + " drafted"
	}
	return text + " published"
}

// until waits until the variants and the waves are there.
func (r *rollout) until(variants, waves string) {
	r.Helper()
	testenv.Eventually(r.T, fmt.Sprintf("%s; %s", variants, waves), func(ctx context.Context) (bool, string) {
		has, states := r.look(ctx)
		return has == variants && states == waves, fmt.Sprintf("%s; %s; %s", has, states, said(r.set))
	})
}

// told waits until so many events with the reason were told of the set.
func (r *rollout) told(reason string, times int) {
	r.Helper()
	testenv.Eventually(r.T, fmt.Sprintf("%s told %d times", reason, times), func(context.Context) (bool, string) {
		r.events.mu.Lock()
		defer r.events.mu.Unlock()
		count := 0
		for _, told := range r.events.events {
			if name, rest, _ := strings.Cut(told, " "); name == r.name && strings.HasSuffix(rest, " "+reason) {
				count++
			}
		}
		return count == times, fmt.Sprint(count)
	})
}

// edit changes the set.
func (r *rollout) edit(change func(*packagesv1.PackageVariantSetSpec)) {
	r.Helper()
	r.ask(r.set, func() { change(&r.set.Spec) })
}

// template edits the template: its variants get a label.
func template(label string) func(*packagesv1.PackageVariantSetSpec) {
	return func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Labels = map[string]string{"edit": label}
	}
}

// paused holds the second wave.
func paused(is bool) func(*packagesv1.PackageVariantSetSpec) {
	return func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.Waves[1].Pause = is }
}

func TestWaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for name, story := range map[string]func(*testing.T, *fleet){
		"upstream": upstreamInWaves, "branch": branchInWaves, "edits": editsInWaves, "failure": failureStops, "gates": gatesHold,
		"newcomer": newcomerJoins, "flight": fewInFlight, "back": backInWaves, "waiting": waitingIsAFailure, "twins": twinsAreTold, "approval": nobodyApprovesAnyMore,
		"half": halfATargetFails, "rewaved": wavesChangeOnTheWay,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, f)
		})
	}
}

// upstreamInWaves: a new revision reaches the second wave when the first is published with it, and no pause holds it.
func upstreamInWaves(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "web", paused(true))
	if at := r.set.Status.Rollout; at.Upstream.Revision != "v1" || !conditions.IsTrue(r.set, packagesv1.RolledOutCondition) {
		t.Errorf("the first revision: %+v", at)
	}
	r.release("v2", "2.0.0")
	r.until("canary v2 published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	if c := conditions.Get(r.set, packagesv1.RolledOutCondition); c == nil || c.Message != "Wave second: The wave is paused" || !conditions.IsReady(r.set) {
		t.Errorf("what is waited for is not said: %+v", c)
	}
	if first := r.set.Status.Rollout.Waves[0]; first.Targets != 1 || first.Updated != 1 || first.Published != 1 || first.Since == nil {
		t.Errorf("the first wave: %+v", first)
	}
	r.edit(paused(false))
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Done")
	r.told("WaveBegun", 2)
	r.told("WaveDone", 2)
	r.settles()
	r.told("WaveBegun", 2)
	var kept appsv1.ControllerRevisionList
	if err := env.Client.List(t.Context(), &kept, client.InNamespace(r.namespace), client.MatchingLabels{packagesv1.SetLabel: string(r.set.UID)}); err != nil {
		t.Fatal(err)
	}
	if len(kept.Items) != 1 || kept.Items[0].Name != r.set.Status.Rollout.Revision {
		t.Errorf("%d revisions are kept, of which no variant is at most", len(kept.Items))
	}
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout = nil })
	r.until("canary v0 not held, north v0 not held, south v0 not held", "")
}

// branchInWaves: a branch that moves is held as a revision is, and what leaves the package as it was is nothing new.
func branchInWaves(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "moving")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Upstream.Branch = "main" })
	r.until("canary main published, north main published, south main published", "first Done, second Done")
	r.edit(paused(true))
	r.release("v2", "2.0.0")
	r.until("canary main published, north main published, south main published", "first Done, second Waiting Paused")
	commits := map[string]string{}
	for _, v := range r.variants() {
		commits[v.Spec.Downstream.Repo] = v.Spec.Upstream.Commit
	}
	if commits["north"] != commits["south"] || commits["canary"] == commits["north"] || r.set.Status.Rollout.Upstream.Commit != commits["canary"] {
		t.Errorf("the variants are held at %v", commits)
	}
}

// editsInWaves: an edit of the template goes from wave to wave, one in between skips those that had not begun, and what is taken back
// comes to an end at once.
func editsInWaves(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "edits", paused(true))
	r.edit(template("one"))
	r.until("canary v1 one published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	r.edit(template("two"))
	r.until("canary v1 two published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	before := r.variants()
	r.edit(paused(false))
	r.until("canary v1 two published, north v1 two published, south v1 two published", "first Done, second Done")
	for i, v := range r.variants() {
		want := before[i].Generation
		if v.Spec.Downstream.Repo != "canary" {
			want++
		}
		if v.Generation != want {
			t.Errorf("%s was changed %d times", v.Spec.Downstream.Repo, v.Generation-before[i].Generation)
		}
	}
	r.edit(paused(true))
	r.edit(template("one"))
	r.until("canary v1 one published, north v1 two published, south v1 two published", "first Done, second Waiting Paused")
	r.edit(template("two"))
	r.until("canary v1 two published, north v1 two published, south v1 two published", "first Done, second Done")
}

// failureStops: a variant that fails stops the others, and is named; an edit that mends it goes on.
func failureStops(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "failing")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Pipeline = &packagesv1.PipelineTemplate{Mutators: []packagesv1.FunctionTemplate{{Function: packagesv1.Function{Image: "no-such-function"}}}}
	})
	r.until("canary v1 UnknownFunction, north v1 published, south v1 published", "first Failed VariantFailed, second Waiting PreviousWave")
	until(r.plane, r.set, "the variant is named", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.GetReason(s, "Ready") == packagesv1.RolloutStoppedReason && conditions.GetReason(s, packagesv1.RolledOutCondition) == packagesv1.RolloutStoppedReason &&
			strings.Contains(said(s), "PackageVariant failing.canary.failing-") && strings.Contains(said(s), "UnknownFunction"), said(s)
	})
	r.told("WaveFailed", 1)
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Pipeline = nil; template("well")(s) })
	r.until("canary v1 well published, north v1 well published, south v1 well published", "first Done, second Done")
	until(r.plane, r.set, "all is well", func(s *packagesv1.PackageVariantSet) (bool, string) { return conditions.IsReady(s), said(s) })
}

// gatesHold: the second wave waits for what an expression says of the targets of the first, and for an object.
func gatesHold(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "gated", func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.Gates = []packagesv1.Gate{
			{ReadyExpr: "target.annotations.healthy == 'yes'"}, {Object: &packagesv1.GateObject{APIVersion: "v1", Kind: "ConfigMap", Name: "go"}},
		}
	})
	r.release("v2", "2.0.0")
	closed := func(why string) {
		t.Helper()
		r.until("canary v2 published, north v1 published, south v1 published", "first Done, second Waiting GateClosed")
		until(r.plane, r.set, why, func(s *packagesv1.PackageVariantSet) (bool, string) {
			message := s.Status.Rollout.Waves[1].Message
			return strings.Contains(message, why), message
		})
	}
	closed("spec.rollout.gates[1]: ConfigMap go does not exist")
	r.create(&corev1.ConfigMap{ObjectMeta: r.meta("go")})
	closed("Repository canary: spec.rollout.gates[0].readyExpr: the expression")
	r.annotate("canary", "no")
	closed("does not hold")
	r.annotate("canary", "yes")
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Done")
}

// annotate says of a cluster whether it is healthy.
func (r *rollout) annotate(name, healthy string) {
	r.Helper()
	cluster := &packagesv1.Repository{ObjectMeta: r.meta(name)}
	if err := env.Client.Get(r.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		r.Fatal(err)
	}
	r.ask(cluster, func() { cluster.Annotations = map[string]string{"healthy": healthy} })
}

// newcomerJoins: a target that comes in mid-rollout begins with what its wave is at, whatever the template says by now.
func newcomerJoins(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "late", func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].RepositorySelector.MatchLabels = map[string]string{"late": "yes"}
	}, paused(true))
	r.edit(template("new"))
	r.release("v2", "2.0.0")
	r.until("canary v2 new published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	r.cluster("east", map[string]string{"late": "yes"})
	r.cluster("probe", map[string]string{"late": "yes", "wave": "first"})
	r.until("canary v2 new published, east v1 published, north v1 published, probe v2 new published, south v1 published", "first Done, second Waiting Paused")
	r.edit(paused(false))
	r.until("canary v2 new published, east v2 new published, north v2 new published, probe v2 new published, south v2 new published", "first Done, second Done")
}

// fewInFlight: of a wave, the next is changed when the one before is published.
func fewInFlight(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "flight", func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Approval.Policy = packagesv1.ApprovalInitial
	})
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.Waves = []packagesv1.Wave{{Name: "first", MaxInFlight: new(intstr.FromString("30%"))}, {Name: "second"}}
	})
	r.release("v2", "2.0.0")
	for _, at := range []string{
		"canary v2 drafted, north v1 published, south v1 published", "canary v2 published, north v2 drafted, south v1 published",
		"canary v2 published, north v2 published, south v2 drafted",
	} {
		r.until(at, "first Progressing NotPublished, second Empty")
		for _, v := range r.variants() {
			if v.Status.Change != nil {
				r.publish(&v)
			}
		}
	}
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Empty")
}

// variants are those of the set, by their Repositories.
func (r *rollout) variants() []packagesv1.PackageVariant {
	r.Helper()
	var list packagesv1.PackageVariantList
	if err := env.Client.List(r.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		r.Fatal(err)
	}
	own := slices.DeleteFunc(list.Items, func(v packagesv1.PackageVariant) bool { return !metav1.IsControlledBy(&v, r.set) })
	slices.SortFunc(own, func(a, b packagesv1.PackageVariant) int {
		return strings.Compare(a.Spec.Downstream.Repo, b.Spec.Downstream.Repo)
	})
	return own
}

// TestARestartInMidRolloutChangesNothing: nor does the loss of the status.
func TestARestartInMidRolloutChangesNothing(t *testing.T) {
	t.Parallel()
	r := newFleet(t).rollout(t, "web", func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.Waves[0].Soak = &metav1.Duration{Duration: time.Hour}
	})
	r.release("v2", "2.0.0")
	const variants, waves = "canary v2 published, north v1 published, south v1 published", "first Done, second Waiting Soaking"
	r.until(variants, waves)
	since, before := r.set.Status.Rollout.Waves[0].Since, r.variants()
	r.stop()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(r.set), r.set); err != nil {
		t.Fatal(err)
	}
	r.set.Status = packagesv1.PackageVariantSetStatus{ObservedGeneration: -1}
	if err := env.Client.Status().Update(t.Context(), r.set); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.until(variants, waves)
	r.again(r.set, func() string { return r.set.Status.LastHandledReconcileAt })
	r.until(variants, waves)
	// Others may still be at work on what went before, so that the quietest of some looks counts.
	fewest := int64(math.MaxInt64)
	for i := 0; i < 20 && fewest != 1; i++ {
		before := r.writes.Load()
		r.again(r.set, func() string { return r.set.Status.LastHandledReconcileAt })
		fewest = min(fewest, r.writes.Load()-before)
	}
	if fewest != 1 {
		t.Errorf("a look that finds nothing new writes %d times, and not its answer alone", fewest)
	}
	if now := r.set.Status.Rollout.Waves[0].Since; !now.Equal(since) {
		t.Errorf("the wave is done since %s, and was since %s", now, since)
	}
	for i, v := range r.variants() {
		if v.Generation != before[i].Generation || v.Status.Published.Commit != before[i].Status.Published.Commit {
			t.Errorf("%s has changed", v.Name)
		}
	}
}
