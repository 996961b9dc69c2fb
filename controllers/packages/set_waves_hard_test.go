package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// publishOpen approves all that is open.
func (r *rollout) publishOpen() {
	r.Helper()
	for _, v := range r.variants() {
		if v.Status.Change != nil {
			r.publish(&v)
		}
	}
}

// backInWaves: what variants were made as goes from wave to wave like anything else when it comes back.
func backInWaves(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "back", func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Approval.Policy = packagesv1.ApprovalInitial
	})
	r.edit(template("one"))
	r.until("canary v1 one drafted, north v1 published, south v1 published", "first Progressing NotPublished, second Waiting PreviousWave")
	r.publishOpen()
	r.until("canary v1 one published, north v1 one drafted, south v1 one drafted", "first Done, second Progressing NotPublished")
	r.publishOpen()
	r.until("canary v1 one published, north v1 one published, south v1 one published", "first Done, second Done")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Labels = nil })
	const variants, waves = "canary v1 drafted, north v1 one published, south v1 one published", "first Progressing NotPublished, second Waiting PreviousWave"
	r.until(variants, waves)
	r.settles()
	r.until(variants, waves)
}

// settles has the set looked at again, with all that was written seen.
func (r *rollout) settles() {
	r.Helper()
	for range 2 {
		r.again(r.set, func() string { return r.set.Status.LastHandledReconcileAt })
	}
}

// places are where the set's variants are.
func (r *rollout) places() string {
	r.Helper()
	var all []string
	for _, v := range r.variants() {
		all = append(all, v.Spec.Downstream.Repo+"/"+v.Spec.Downstream.Package)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// waitingIsAFailure: a failure that is tried again, or waits for something, stops a rollout as one that stands still does, and holds
// none where nobody waits for it.
func waitingIsAFailure(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "waiting", func(s *packagesv1.PackageVariantSetSpec) {
		s.DeletionGuard = hasty(0)
	})
	other := &packagesv1.PackageVariant{ObjectMeta: r.meta("other"), Spec: packagesv1.PackageVariantSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: r.name}, Downstream: packagesv1.Downstream{Repo: "canary", Package: "taken"},
	}}
	always(&other.Spec)
	r.create(other)
	r.published(other, "v1")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Downstream = &packagesv1.DownstreamTemplate{Package: "taken"}
	})
	const variants = "canary v1 NotOwned, north v1 published, south v1 published"
	r.until(variants, "first Failed VariantFailed, second Waiting PreviousWave")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.OnFailure = packagesv1.FailureContinues })
	r.until(variants, "first Done, second Done")
}

// twinsAreTold: of two targets that select the same, each has its own template at each revision.
func twinsAreTold(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "twins")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		twin := *s.Targets[0].DeepCopy()
		twin.Template.Downstream = &packagesv1.DownstreamTemplate{Package: "twin"}
		s.Targets = append(s.Targets, twin)
	})
	r.until("canary v1 published, canary v1 published, north v1 published, north v1 published, south v1 published, south v1 published", "first Done, second Done")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.Waves[0].MaxInFlight = new(intstr.FromInt32(1)) })
	r.edit(paused(true))
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[1].Template.Downstream.Package = "other" })
	testenv.Eventually(t, "another place is reached in the first wave", func(context.Context) (bool, string) {
		return strings.HasPrefix(r.places(), "canary/other canary/twins "), r.places()
	})
	r.settles()
	if has := r.places(); has != "canary/other canary/twins north/twin north/twins south/twin south/twins" {
		t.Errorf("another place is reached at %s", has)
	}
	r.release("v2", "2.0.0")
	r.until("canary v2 published, canary v2 published, north v1 published, north v1 published, south v1 published, south v1 published", "first Done, second Waiting Paused")
	if r.set.Status.ProblemCount != 0 || !conditions.IsReady(r.set) {
		t.Errorf("there are %d problems: %s", r.set.Status.ProblemCount, said(r.set))
	}
}

// nobodyApprovesAnyMore: once a set says that people approve, nothing is approved by what it said before. Whoever made that edit need
// not have the right to approve, and chooses the targets by now.
func nobodyApprovesAnyMore(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "approval", func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].RepositorySelector.MatchLabels = map[string]string{"lent": "yes"}
	})
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Approval.Policy = packagesv1.ApprovalManual
		template("new")(s)
	})
	const waves = "first Progressing NotPublished, second Waiting PreviousWave"
	r.until("canary v1 new drafted, north v1 published, south v1 published", waves)
	r.cluster("lent", map[string]string{"lent": "yes"})
	r.until("canary v1 new drafted, lent v1 drafted, north v1 published, south v1 published", waves)
	for _, v := range r.variants() {
		if policy := v.Spec.GetApprovalPolicy(); policy != packagesv1.ApprovalManual {
			t.Errorf("the policy of %s is %s", v.Name, policy)
		}
	}
}

// halfATargetFails: a target of which not everything can be seen is a failure like others, for which nobody waits where none is waited for.
func halfATargetFails(t *testing.T, f *fleet) {
	t.Helper()
	for name, wave := range map[string]string{"canary": "first", "north": "second", "south": "second"} {
		f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"place": "yes", "wave": wave}}})
	}
	r := f.rollout(t, "half", func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].RepositorySelector = nil
		s.Targets[0].ObjectSelector = &packagesv1.ObjectSelector{
			APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"place": "yes"}},
		}
	})
	canary := &corev1.ConfigMap{ObjectMeta: r.meta("canary")}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(canary), canary); err != nil {
		t.Fatal(err)
	}
	r.ask(canary, func() {
		canary.Annotations = map[string]string{}
		for i := range 20 {
			canary.Annotations[fmt.Sprintf("a%d", i)] = strings.Repeat("a", 1000)
		}
	})
	until(r.plane, r.set, "the target has failed", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return strings.Contains(said(s), "16384 bytes"), said(s)
	})
	r.release("v2", "2.0.0")
	r.until("canary v1 published, north v1 published, south v1 published", "first Failed VariantFailed, second Waiting PreviousWave")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.OnFailure = packagesv1.FailureContinues })
	r.until("canary v1 published, north v2 published, south v2 published", "first Done, second Done")
}

// wavesChangeOnTheWay: an edit of the waves while a revision goes out takes it back from nobody, and begins nothing anew.
func wavesChangeOnTheWay(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "rewaved", paused(true))
	r.release("v2", "2.0.0")
	r.until("canary v2 published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	revision, before := r.set.Status.Rollout.Revision, r.variants()
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.Waves = []packagesv1.Wave{
			{Name: "nobody", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "none"}}},
			{Name: "rest", Pause: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "second"}}},
		}
	})
	r.until("canary v2 published, north v1 published, south v1 published", "nobody Empty, rest Waiting Paused, (others) Done")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.Waves[1].Pause = false })
	r.until("canary v2 published, north v2 published, south v2 published", "nobody Empty, rest Done, (others) Done")
	if now := r.variants()[0]; r.set.Status.Rollout.Revision != revision || now.Generation != before[0].Generation || now.Status.Published.Commit != before[0].Status.Published.Commit {
		t.Errorf("the revision was %s and is %s; the canary was changed %d times", revision, r.set.Status.Rollout.Revision, now.Generation-before[0].Generation)
	}
}
