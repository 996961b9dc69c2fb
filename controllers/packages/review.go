package packages

import (
	"cmp"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// reviewed is what a look found out about the review of the change.
type reviewed struct {
	// isKnown says that the forge was looked at, and request is what it has; nil for none.
	isKnown bool
	request *forge.Request
	// isAsked says that there is to be a request.
	isAsked bool
	// err says why that cannot be, or not at the moment.
	err error
}

// review asks for the review of what is open, and returns the change that follows from what people made of it; nil for none.
func (k *variants) review(obj *packagesv1.PackageVariant, b *brief, l *look) *pkgrepo.Change {
	spec := obj.Spec.GetReview()
	if spec == nil {
		k.shared.reviews.forget(client.ObjectKeyFromObject(obj))
		return nil
	}
	if obj.Spec.DryRun {
		return nil
	}
	branch := branchOf(l.state)
	if l.open != nil && branch != nil && branch.Tree == l.open.Tree && (branch.Name == "" || l.open.Facts.Base != "") {
		// Whoever merged it has approved exactly that. No two changes that were begun here have one tree: each names what it
		// was begun on.
		return &pkgrepo.Change{Kind: pkgrepo.Record, Package: b.downstream, Workspace: l.open.Workspace, Tree: l.open.Tree}
	}
	w := k.wanted(obj, b, l)
	if w == nil {
		return nil
	}
	now := k.shared.reviews.ask(client.ObjectKeyFromObject(obj), boardKey{b.downRepo, spec.Provider, spec.SecretRef.Name}, w)
	l.review = reviewed{isKnown: now.isKnown, request: now.request, isAsked: w.words != "", err: now.err}
	switch request := now.request; {
	case request == nil:
	case l.open == nil && branch.Name == "":
		// The forge has deleted the change's branch with its merge.
		return &pkgrepo.Change{Kind: pkgrepo.Record, Package: b.downstream, Workspace: request.Mark.Workspace, Tree: branch.Tree}
	case l.open != nil && request.State == forge.Closed && l.open.Lifecycle == pkgrepo.Proposed:
		return &pkgrepo.Change{Kind: pkgrepo.Reject, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
	}
	return nil
}

// wanted is what the forge is to be asked; nil for nothing.
func (k *variants) wanted(obj *packagesv1.PackageVariant, b *brief, l *look) *want {
	w := &want{mark: forge.Mark{Owner: b.owner, Package: b.downstream}, news: b.down.Snapshot().Head}
	switch branch := branchOf(l.state); {
	case l.open == nil && (branch == nil || branch.Facts.Variant != b.owner):
		return nil
	case l.open == nil:
		w.mark.Tree = branch.Tree
		if branch.Name != "" {
			w.news = "" // It is published: nothing is to be found out but who did so.
		}
		return w
	case isApproved(obj, l):
		return nil
	}
	w.news = ""
	w.mark.Workspace, w.mark.Commit, w.mark.Tree = l.open.Workspace, l.open.Commit, l.open.Tree
	w.head, w.isProposed = shortRef(l.open.Ref), l.open.Lifecycle == pkgrepo.Proposed
	if !w.isProposed && !l.isMade(b) {
		return w // It is about to be another one.
	}
	w.title, w.words = reviewWords(obj, b, l, l.change)
	w.mark.Digest = wordsDigest(w.title, w.words)
	return w
}

// problem is what only people can mend about the review, as an error for Ready.
func (r *reviewed) problem(b *brief) error {
	if !r.isAsked || r.err == nil || r.isDelayed() {
		return nil
	}
	return failure.Wait(packagesv1.ReviewFailedReason, 0, fmt.Errorf(
		"the review of package %s of Repository %s cannot be asked for: %w", b.downstream, b.downRepo.Name, r.err))
}

// isDelayed tells whether nothing is wrong but that the forge does not answer at the moment.
func (r *reviewed) isDelayed() bool {
	return errors.Is(r.err, forge.ErrLimited) || errors.Is(r.err, forge.ErrUnavailable)
}

// fact is the condition that the review is; false where nothing is to be said of one.
func (r *reviewed) fact(l *look) (status.Fact, bool) {
	const condition = packagesv1.ReviewedCondition
	request := r.request
	switch {
	case r.err != nil && r.isDelayed():
		return status.False(condition, packagesv1.ReviewDelayedReason, printable.Line(r.err.Error(), maxConditionWords)), true
	case r.err != nil:
		return status.False(condition, packagesv1.ReviewFailedReason, printable.Line(r.err.Error(), maxConditionWords)), true
	case request == nil && r.isAsked:
		return status.Unknown(condition, packagesv1.ProgressingReason, "The review is about to be asked for"), true
	case request == nil:
		return status.Fact{}, false
	}
	name := fmt.Sprintf("request %d", request.Number)
	if request.URL != "" {
		name += " at " + request.URL
	}
	switch {
	case request.State == forge.Open:
		return status.Unknown(condition, packagesv1.ReviewPendingReason, "The "+name+" waits for people: its merge approves the change, and its closing rejects it"), true
	case request.State == forge.Closed:
		return status.False(condition, packagesv1.ReviewClosedReason, sentence(request.By, "closed", name)+"; open it again to have the same change reviewed"), true
	case l.open != nil:
		return status.False(condition, packagesv1.MergedOtherwiseReason, sentence(request.By, "merged", name)+", and the branch has not what was to be reviewed; nothing is published"), true
	}
	return status.True(condition, packagesv1.ReviewMergedReason, sentence(request.By, "merged", name)), true
}

// sentence says who did something, where that is known.
func sentence(by, did, what string) string {
	return fmt.Sprintf("%s %s %s", cmp.Or(by, "Somebody"), did, what)
}

// report gives the condition of the review, and what is said of it in the status. As long as nobody has looked, what was said before
// stays.
func (r *reviewed) report(obj *packagesv1.PackageVariant, l *look) []status.Fact {
	if obj.Spec.GetReview() == nil {
		obj.Status.Review = nil
		return nil
	}
	if !r.isKnown && r.err == nil && !r.isAsked {
		return status.Kept(obj, packagesv1.ReviewedCondition)
	}
	if r.isKnown {
		obj.Status.Review = nil
	}
	if request := r.request; request != nil {
		obj.Status.Review = &packagesv1.ReviewStatus{
			Number: int64(request.Number), URL: request.URL, State: packagesv1.ReviewState(request.State), By: fit(request.By, maxName),
		}
	}
	if stated, ok := r.fact(l); ok {
		return []status.Fact{stated}
	}
	return nil
}

// tail is what Ready says of the review beside the change.
func (r *reviewed) tail() string {
	request := r.request
	switch {
	case r.err != nil && r.isAsked:
		return "; its review is delayed, see the condition " + packagesv1.ReviewedCondition
	case request == nil:
		return ""
	case request.State == forge.Closed:
		return "; " + sentence(request.By, "rejected it by closing", fmt.Sprintf("request %d", request.Number))
	case request.State == forge.Merged:
		return "; " + sentence(request.By, "merged", fmt.Sprintf("request %d", request.Number))
	}
	return fmt.Sprintf("; request %d waits for people", request.Number)
}
