package packages_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/intstr"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
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
	r.until("canary v1 drafted, north v1 one published, south v1 one published", "first Progressing NotPublished, second Waiting PreviousWave")
}

// triedAgainIsAFailure: a failure that is tried again, or waits for something, stops a rollout as one that stands still does, and
// holds none where nobody waits for it.
func triedAgainIsAFailure(t *testing.T, f *fleet) {
	t.Helper()
	r := f.rollout(t, "retried")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		// Nobody has told the functions of this plane what the API server knows.
		s.Targets[0].Template.Pipeline = &packagesv1.PipelineTemplate{Validators: []packagesv1.FunctionTemplate{{Function: packagesv1.Function{Image: "kubeconform"}}}}
	})
	r.until("canary v1 RenderFailed, north v1 published, south v1 published", "first Failed VariantFailed, second Waiting PreviousWave")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.OnFailure = packagesv1.FailureContinues })
	r.until("canary v1 RenderFailed, north v1 RenderFailed, south v1 RenderFailed", "first Done, second Done")
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
