package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fanout"
)

// dryRun works out what would become of the variants, and has none made.
func (k *sets) dryRun(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread, compiled *fanout.Set, found *finding) error {
	up, seen := obj.Spec.Upstream, found.upstream()
	s.rollout = obj.Status.Rollout // Nothing is decided about it.
	if obj.Spec.Rollout != nil {
		history, err := k.history(ctx, obj)
		if err != nil {
			return err
		}
		content, err := k.content(ctx, obj)
		if err != nil {
			return err
		}
		if up = content.Pin; len(history) > 0 && history[len(history)-1].key == keyOf(content) {
			up = history[len(history)-1].Pin // It would stay the newest.
		}
	}
	s.wanted = fanout.Gather(found.found, func(t fanout.Target) (packagesv1.PackageVariantSpec, error) {
		spec, err := compiled.Variant(t, seen, found.seen)
		spec.Upstream = up
		return spec, err
	})
	f := k.foresee(ctx, obj, s.there, s.wanted)
	s.preview, s.previewText = f.report("")
	s.again = f.again
	return nil
}

// isHeld says of a revision that it waits until its preview is approved.
func (r *setRevision) isHeld() bool { return r.Annotations[packagesv1.HeldAnnotation] != "" }

// holds tells whether a revision of the content is to wait. It is compared with the one that was not held last: what was not
// rolled out is no reason to let go of the next.
func (r *rolling) holds(content revisionContent, compiled *fanout.Set) bool {
	policy := r.obj.Spec.Rollout.PreviewApproval
	if policy == "" {
		return false
	}
	for _, last := range slices.Backward(r.history) {
		if !last.isHeld() {
			return digestOf(last.Targets) != digestOf(content.Targets) || policy == packagesv1.ApproveAll && last.key != keyOf(content)
		}
	}
	for _, v := range r.there {
		if marksOf(v) != (marks{}) {
			return true // Nobody knows what was before.
		}
	}
	if len(r.there) == 0 {
		return len(r.history) > 0
	}
	return r.becomeOthers(compiled, policy)
}

// becomeOthers tells whether variants that no revision has held so far are others than the set wants by now: it was edited when its
// rollout was added. What is new upstream they have followed by themselves.
func (r *rolling) becomeOthers(compiled *fanout.Set, policy packagesv1.PreviewApproval) bool {
	is := isSameBut
	if policy == packagesv1.ApproveAll {
		is = isVariant
	}
	wanted := compiled.Variants(r.found.found, r.seen, r.found.seen)
	for at, spec := range wanted.Variants {
		if have := r.there[objectName(r.obj.Name, at.Repo, at.Package)]; have == nil || !is(have, spec) {
			return true
		}
	}
	return false
}

// hold keeps the newest revision back until its preview is approved: the rollout goes on with the one before, as if there was no other.
func (r *rolling) hold(ctx context.Context, s *spread) error {
	newest := r.newest()
	if r.obj.Spec.Rollout.PreviewApproval == "" || !newest.isHeld() {
		return nil
	}
	f := r.foresee(ctx, r.obj, s.there, fanout.Gather(r.found.found, func(t fanout.Target) (packagesv1.PackageVariantSpec, error) {
		return r.variant(t, newest)
	}))
	preview, text := f.report(newest.Name)
	approved := strings.TrimSpace(r.obj.Annotations[packagesv1.ApprovedPreviewAnnotation])
	if preview.Digest != "" && approved == preview.Digest {
		s.approved = approved
		return r.release(ctx, newest, approved)
	}
	s.preview, s.previewText, s.again, s.held = preview, text, f.again, heldSaid(preview, approved)
	var held, others []*setRevision
	for _, revision := range r.history {
		if revision.isHeld() {
			held = append(held, revision)
		} else {
			others = append(others, revision)
		}
	}
	// Nobody looks any more at what an edit was before it became another.
	if err := r.collect(ctx, held, nil); err != nil {
		return err
	}
	if r.history = others; len(others) == 0 {
		return failure.Wait(packagesv1.PreviewNotApprovedReason, 0, errors.New(s.held))
	}
	return r.leaveOut(r.newest())
}

// leaveOut leaves out the targets that the revision does not know: whatever they have stays, and they have no problem.
func (r *rolling) leaveOut(revision *setRevision) error {
	made, err := r.at(revision)
	if err != nil {
		return err
	}
	var known []fanout.Target
	for _, t := range r.found.found {
		if made.wasThere[t.Index] {
			known = append(known, t)
		} else {
			r.unknown = append(r.unknown, fanout.Problem{Target: t, Err: errNotThen})
		}
	}
	r.found.found = known
	return nil
}

// heldSaid says what a revision that is held waits for.
func heldSaid(p *packagesv1.SetPreview, approved string) string {
	switch {
	case p.Digest == "":
		return fmt.Sprintf("Revision %s waits for its preview, which %d targets are left out of so far", p.Revision, p.Pending)
	case approved != "":
		return fmt.Sprintf("Revision %s waits: the annotation %s names %s, and its preview is %s now; look at it again, and approve that", p.Revision,
			packagesv1.ApprovedPreviewAnnotation, fit(approved, maxLabel), p.Digest)
	}
	return fmt.Sprintf("Revision %s waits until the annotation %s names its preview, %s", p.Revision, packagesv1.ApprovedPreviewAnnotation, p.Digest)
}

// release lets go of a revision of which the preview is approved, and notes that on it: what it becomes later takes nothing back.
func (r *rolling) release(ctx context.Context, revision *setRevision, digest string) error {
	before := revision.DeepCopy()
	delete(revision.Annotations, packagesv1.HeldAnnotation)
	metav1.SetMetaDataAnnotation(&revision.ObjectMeta, packagesv1.ApprovedPreviewAnnotation, digest)
	if err := r.shared.Client.Patch(ctx, &revision.ControllerRevision, client.MergeFrom(before), client.FieldOwner(r.shared.FieldOwner)); err != nil {
		return fmt.Errorf("change ControllerRevision %s: %w", revision.Name, err)
	}
	return nil
}

// forgetPreview drops what was worked out for a set, and what is left to be.
func (k *sets) forgetPreview(set types.NamespacedName) {
	worked := k.previews.of(set)
	if len(worked) == 0 {
		return
	}
	for name := range worked {
		k.shared.Previews.Forget(setOrderer(set, name).NamespacedName)
	}
	k.previews.keep(set, nil)
	k.shared.desk.forgetSet(set)
}
