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
	l.state = b.down.Snapshot().Package(b.downstream)
	if l.open, err = k.shared.claim(ctx, b, l.state); err != nil {
		return err
	}
	l.last = k.shared.desk.last(orderer{ofVariant, client.ObjectKeyFromObject(obj)})
	if change := k.step(obj, b, l); change != nil {
		return k.order(obj, b, l, *change)
	}
	return nil
}

// step is the change that comes next; nil if there is nothing to do for now.
func (k *variants) step(obj *packagesv1.PackageVariant, b *brief, l *look) *pkgrepo.Change {
	switch {
	case l.open == nil && l.isPublished(b):
		return nil
	case l.open != nil && l.open.Lifecycle == pkgrepo.Proposed:
		return k.proposed(obj, b, l)
	case l.open == nil || !l.isMade(b):
		write := &pkgrepo.Change{Kind: pkgrepo.Write, Package: b.downstream}
		if l.open != nil {
			write.Workspace = l.open.Workspace
		}
		if obj.Spec.DryRun {
			l.pending, l.pendingReason = "dryRun keeps the package as it is", packagesv1.DryRunReason
		}
		return write
	case obj.Spec.DryRun || !isApproved(obj, l) || len(l.open.Facts.Waiting()) > 0:
		return nil
	}
	return &pkgrepo.Change{Kind: pkgrepo.Propose, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
}

// isPublished tells whether the branch has what should be.
func (l *look) isPublished(b *brief) bool {
	return l.state != nil && l.state.Branch != nil && b.makes(l.state.Branch)
}

// isMade tells whether the open change is what should be, and begun on what the branch has.
func (l *look) isMade(b *brief) bool {
	return b.makes(l.open) && l.open.Facts.Base == baseOf(l.state.Branch)
}

// baseOf is how a change names what it was begun on.
func baseOf(branch *pkgrepo.Revision) string {
	if branch == nil {
		return kpt.BaseNone
	}
	return branch.Tree
}

// proposed is what comes after a proposal: nothing but its approval, as it is frozen.
func (k *variants) proposed(obj *packagesv1.PackageVariant, b *brief, l *look) *pkgrepo.Change {
	switch {
	case !l.isMade(b):
		l.pending = fmt.Sprintf("The proposal %s is frozen; publish it, or set it back to Draft", l.open.Workspace)
		l.pendingReason = packagesv1.FrozenProposalReason
	case !obj.Spec.DryRun && isApproved(obj, l) && len(l.open.Facts.Waiting()) == 0:
		return &pkgrepo.Change{Kind: pkgrepo.Publish, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit, Message: b.message("Publish")}
	}
	return nil
}

// isApproved tells whether the spec approves the change that is open. Whoever set its policy had the right to.
func isApproved(obj *packagesv1.PackageVariant, l *look) bool {
	switch obj.Spec.GetApprovalPolicy() {
	case packagesv1.ApprovalAlways:
		return true
	case packagesv1.ApprovalInitial:
		return l.state.Branch == nil && len(l.state.Published) == 0
	case packagesv1.ApprovalManual:
	}
	return false
}

// order has the change made, and tells what became of it. A failure is told once more while it is tried again.
func (k *variants) order(obj *packagesv1.PackageVariant, b *brief, l *look, change pkgrepo.Change) error {
	o := order{
		from: orderer{ofVariant, client.ObjectKeyFromObject(obj)}, uid: obj.UID, generation: obj.Generation, made: &made{isPreview: obj.Spec.DryRun},
	}
	o.key = strings.Join([]string{b.downRepo.Name, b.downstream, string(change.Kind), l.digest, tipOf(l.open), baseOf(branchOf(l.state)), fmt.Sprint(obj.Spec.DryRun), string(obj.Spec.GetConflictPolicy())}, " ")
	if change.Kind == pkgrepo.Write {
		change.Make = (&maker{brief: b, shared: k.shared, policy: obj.Spec.GetConflictPolicy(), workspace: change.Workspace, kept: o.made}).make
	}
	o.change = change
	found := k.shared.desk.ask(b.downRepo, o)
	if found == nil {
		l.progress = progressOf(change)
		return nil
	}
	l.last = found
	if found.result.Err == nil && obj.Spec.DryRun {
		return nil
	}
	if found.result.Err == nil {
		// The repository has moved on since.
		l.progress = progressOf(change)
		return nil
	}
	return explain(found.result.Err)
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
	case pkgrepo.Propose:
		return "Proposing the draft"
	case pkgrepo.Publish:
		return "Publishing the proposal"
	default:
		return "Taking back what is open"
	}
}
