package packages_test

import (
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestHeldEditsOutliveTheProcess: they stay held, by the same digest, and go out when that is approved. An edit that comes with the
// rollout itself is held as every other; a rollout that changes nothing else is not.
func TestHeldEditsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	f := newPreviewed(t)
	r := f.begin(t, "web", nil, func(s *packagesv1.PackageVariantSetSpec) { s.Rollout, s.Targets[0].Template.Approval = nil, nil })
	until(r.plane, r.set, "all are drafted", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.ReadyVariants == 3 && s.Status.OpenVariants == 3, fmt.Sprintf("%s %+v", said(s), s.Status)
	})
	before := f.refs("web")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout = &packagesv1.Rollout{Waves: []packagesv1.Wave{{Name: "all"}}, PreviewApproval: packagesv1.ApproveEdits}
		template("none")(s)
	})
	held := func(what string) string {
		t.Helper()
		p := r.previews(what, func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" })
		if lines := f.lines(t, r.set); len(lines) != 3 || lines["north"].Files == nil {
			t.Errorf("%s has %+v", what, lines)
		}
		if diff := cmp.Diff(before, f.refs("web")); diff != "" {
			t.Errorf("something was written to Git:\n%s", diff)
		}
		return p.Digest
	}
	first := held("the preview of what came with the rollout")
	if conditions.GetReason(r.set, "Ready") != packagesv1.PreviewNotApprovedReason {
		t.Errorf("it is not held: %s", said(r.set))
	}
	r.edit(template("other"))
	r.previews("the preview of another edit in its place", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Digest != first && r.held() == 1 })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Labels = nil })
	r.until("canary v1 drafted, north v1 drafted, south v1 drafted", "all Done")

	r.edit(template("one"))
	digest := held("the preview of the edit")
	r.stop()
	r.start()
	r.again(r.set, func() string { return r.set.Status.LastHandledReconcileAt })
	if again := held("the preview after the restart"); again != digest {
		t.Errorf("the digest is %s after a restart, not %s", again, digest)
	}
	r.waits("until the annotation", digest)
	r.until("canary v1 drafted, north v1 drafted, south v1 drafted", "all Done")
	r.approve(digest)
	r.until("canary v1 one drafted, north v1 one drafted, south v1 one drafted", "all Progressing NotPublished")
}
