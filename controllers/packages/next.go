package packages

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
)

// next compares what is in Git with what should be, and orders the one step that comes next.
func (k *variants) next(ctx context.Context, obj *packagesv1.PackageVariant, b *brief, l *look) (err error) {
	if err := b.down.checkKnown(b.downstream); err != nil {
		l.digest = "" // The status keeps what it says of the package.
		return err
	}
	l.state = b.down.Snapshot().Package(b.downstream)
	if l.open, err = k.shared.claim(ctx, b, l.state); err != nil {
		return err
	}
	if branch := branchOf(l.state); b.hasAdopted(branch) || b.hasAdopted(l.open) {
		l.adopted = b.adopted
	}
	l.last, l.wrote = k.shared.desk.last(orderer{ofVariant, client.ObjectKeyFromObject(obj)})
	if err := k.describe(ctx, obj, b, l); err != nil {
		return err
	}
	k.compareUpstream(ctx, obj, b, l)
	l.refuse(l.conditions(b))
	for range 2 {
		change := k.review(obj, b, l)
		if change == nil {
			change = k.step(obj, b, l)
		}
		if change == nil {
			k.shared.desk.withdraw(orderer{ofVariant, client.ObjectKeyFromObject(obj)})
			break
		}
		taken, err := k.order(obj, b, l, *change)
		if err != nil || taken == nil {
			return err
		}
		b.adopted, l.adopted = taken, taken // Nothing was written, and something else may come next.
	}
	if l.review.isAsked && l.review.request == nil && l.review.err == nil {
		l.progress = "Asking for the review"
	}
	return l.review.problem(b)
}

// step is the change that comes next; nil if there is nothing to do for now.
func (k *variants) step(obj *packagesv1.PackageVariant, b *brief, l *look) *pkgrepo.Change {
	if change := withdrawal(l.state); change != nil && !obj.Spec.DryRun {
		return change
	}
	switch {
	case l.open == nil && l.isPublished(b):
		return nil
	case l.open != nil && l.open.Lifecycle == pkgrepo.Proposed:
		return k.proposed(obj, b, l)
	case l.open == nil || !l.isMade(b) || !obj.Spec.DryRun && l.computes(obj) && !l.isComputed():
		if obj.Spec.DryRun {
			l.pending, l.pendingReason = "dryRun keeps the package as it is", packagesv1.DryRunReason
			return l.make(pkgrepo.Preview, b)
		}
		return l.make(pkgrepo.Write, b)
	case obj.Spec.DryRun || !isApproved(obj, l):
		return nil
	}
	return &pkgrepo.Change{Kind: pkgrepo.Propose, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
}

// make is a change that makes the package, of the open change or of a new one.
func (l *look) make(kind pkgrepo.Kind, b *brief) *pkgrepo.Change {
	change := &pkgrepo.Change{Kind: kind, Package: b.downstream}
	if l.open != nil {
		change.Workspace = l.open.Workspace
	}
	return change
}

// isPublished tells whether the branch has what should be.
func (l *look) isPublished(b *brief) bool {
	return l.state != nil && l.state.Branch != nil && b.makes(l.state.Branch)
}

// isMade tells whether the open change is what should be, and begun on what the branch has. One that was taken over as it was does
// not say on what it was begun; who publishes it looks at its history.
func (l *look) isMade(b *brief) bool {
	return b.makes(l.open) && (b.hasAdopted(l.open) || l.open.Facts.Base == baseOf(l.state.Branch))
}

// baseOf is how a change names what it was begun on.
func baseOf(branch *pkgrepo.Revision) string {
	if branch == nil {
		return kpt.BaseNone
	}
	return branch.Tree
}

// proposed is what comes after a proposal: nothing but its approval, as it is frozen. Where it is the spec that approves, it also
// sets back what it would not propose any more: nobody else looks at it.
func (k *variants) proposed(obj *packagesv1.PackageVariant, b *brief, l *look) *pkgrepo.Change {
	approves := !obj.Spec.DryRun && isApproved(obj, l)
	change := &pkgrepo.Change{Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
	switch isMade := l.isMade(b); {
	case !obj.Spec.DryRun && l.computes(obj) && (!isMade || !l.isComputed()):
		change.Kind = pkgrepo.Reject // It is computed again as a draft, and proposed after that.
	case !isMade:
		l.pending = fmt.Sprintf("The proposal %s is frozen; publish it, or set it back to Draft", l.open.Workspace)
		l.pendingReason = packagesv1.FrozenProposalReason
		return l.make(pkgrepo.Preview, b)
	case approves:
		change.Kind, change.Message = pkgrepo.Publish, b.message("Publish")
	default:
		return nil
	}
	return change
}

// isApproved tells whether the spec approves the change that is open: it is the very tree that this process has computed of approved
// inputs, without a conflict or a closed gate, and upstream does not go back. Any other commit on the change's branch makes it one that people approve.
func isApproved(obj *packagesv1.PackageVariant, l *look) bool {
	return policyApproves(obj, l) && l.isComputed() && l.wrote.made.listed.count() == 0 && len(l.open.Facts.Waiting()) == 0 && l.older.reason == ""
}

// isComputed tells whether the tip of the open change is what this process has computed last, of nothing that is in the draft.
func (l *look) isComputed() bool {
	return l.wrote != nil && l.wrote.made.isComputed && l.wrote.result.Commit == l.open.Commit
}

// computes tells whether the open change is to be computed for an approval by the spec. Where people have committed to it, it is
// merged with their work, and they approve it.
func (l *look) computes(obj *packagesv1.PackageVariant) bool {
	return policyApproves(obj, l) && (l.open == nil || l.open.IsOwn)
}

// policyApproves tells whether the approval policy is for such a change. You need the approve permission to set it.
func policyApproves(obj *packagesv1.PackageVariant, l *look) bool {
	switch obj.Spec.GetApprovalPolicy() {
	case packagesv1.ApprovalAlways:
		return true
	case packagesv1.ApprovalInitial:
		return branchOf(l.state) == nil && l.state.Newest() == nil
	case packagesv1.ApprovalManual:
	}
	return false
}

// order has the change made, and tells what became of it: taken is what was taken over as it was, nil for nothing. A failure is told
// once more while it is tried again.
func (k *variants) order(obj *packagesv1.PackageVariant, b *brief, l *look, change pkgrepo.Change) (taken *packagesv1.AdoptedStatus, err error) {
	o := order{
		from: orderer{ofVariant, client.ObjectKeyFromObject(obj)}, of: b.down.Repository, uid: obj.UID, generation: obj.Generation,
		made: &made{isPreview: change.Kind == pkgrepo.Preview},
	}
	o.key = l.keyOf(b, change.Kind, obj.Spec.GetConflictPolicy())
	if change.Kind == pkgrepo.Write && l.computes(obj) {
		o.key += " computed"
	}
	if change.Kind == pkgrepo.Write || change.Kind == pkgrepo.Preview {
		change.Make = (&maker{
			brief: b, shared: k.shared, policy: obj.Spec.GetConflictPolicy(), workspace: change.Workspace, computes: l.computes(obj),
			timeout: k.shared.Allowed(obj.Spec.GetTimeout()), before: l.conflicts(), kept: o.made,
		}).make
	}
	o.change = change
	found := k.shared.desk.ask(b.downRepo, o)
	if found == nil {
		l.progress = progressOf(change)
		return nil, nil
	}
	l.last = found
	switch err := found.result.Err; {
	case err != nil:
		return nil, explain(err)
	case found.made != nil && found.made.adopted != nil:
		l.pending, l.pendingReason = "", ""
		return found.made.adopted, nil
	case change.Kind != pkgrepo.Preview:
		// The repository has moved on since.
		l.progress = progressOf(change)
	}
	return nil, nil
}

// keyOf names what is wanted, and of what state of the package.
func (l *look) keyOf(b *brief, kind pkgrepo.Kind, policy packagesv1.ConflictPolicy) string {
	return strings.Join([]string{b.downRepo.Name, b.downstream, string(kind), l.digest, tipOf(l.open), baseOf(branchOf(l.state)), string(policy)}, " ")
}

func tipOf(open *pkgrepo.Revision) string {
	if open == nil {
		return ""
	}
	return open.Commit
}

func branchOf(p *pkgrepo.Package) *pkgrepo.Revision {
	if p == nil {
		return nil
	}
	return p.Branch
}

func progressOf(change pkgrepo.Change) string {
	switch change.Kind {
	case pkgrepo.Write:
		return "Writing the draft"
	case pkgrepo.Preview:
		return "Working out what would be changed"
	case pkgrepo.Propose:
		return "Proposing the draft"
	case pkgrepo.Publish:
		return "Publishing the proposal"
	case pkgrepo.Record:
		return "Recording what was merged"
	case pkgrepo.RejectDeletion:
		return "Withdrawing the proposed deletion"
	case pkgrepo.ProposeDeletion:
		return "Proposing the deletion"
	case pkgrepo.Remove:
		return "Removing the package"
	default:
		return "Taking back what is open"
	}
}
