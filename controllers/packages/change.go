package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// maxDescribed is the number of open changes whose difference from the branch is cached.
const maxDescribed = 1024

// describedKey names the packages that are compared, by their trees: that of the open change, that of the branch, and that in which
// the conflicts were listed.
type describedKey struct {
	repository               types.NamespacedName
	open, branch, conflicted string
}

// describe sets status.change for the tip of the open change. If this reconciliation wrote the tip, its making has the difference.
// Otherwise, the difference is computed from Git, because people may have pushed the commit.
func (k *variants) describe(ctx context.Context, obj *packagesv1.PackageVariant, b *brief, l *look) error {
	if l.open == nil {
		return nil
	}
	l.change = &packagesv1.ChangeStatus{
		PackageRevision: revisionName(l.downstream.Repo, l.open), Workspace: l.open.Workspace,
		Lifecycle: packagesv1.Lifecycle(l.open.Lifecycle), Commit: l.open.Commit, Tree: l.open.Tree,
	}
	before := obj.Status.Change
	if before == nil || before.Workspace != l.open.Workspace {
		before = &packagesv1.ChangeStatus{}
	}
	isWritten := l.wrote != nil && l.wrote.result.Commit == l.open.Commit
	switch {
	case isWritten:
		l.wrote.made.showResults(l.change)
	case before.Commit == l.open.Commit:
		l.change.RenderResults = before.RenderResults
	}
	known, err := b.listed(ctx, l, before)
	if err != nil {
		l.change = obj.Status.Change // It names its commit. Of the new one, it would say that there are no conflicts.
		return err
	}
	if isWritten && !l.wrote.made.isUnchanged && l.wrote.made.branch == baseOf(branchOf(l.state)) {
		l.wrote.made.showDifference(l.change)
		known.show(l.change)
		return nil
	}
	return k.compare(ctx, obj, b, l, known)
}

// listed returns the conflicts of the open change: those of the package that was written, else those of a newer record in Git, else
// those of the status.
func (b *brief) listed(ctx context.Context, l *look, before *packagesv1.ChangeStatus) (conflictList, error) {
	if w := l.wrote; w != nil && !w.made.isUnchanged && w.result.Workspace == l.open.Workspace {
		known := w.made.listed
		known.commit, known.tree = w.result.Commit, w.result.Tree
		return known, nil
	}
	if before.Commit != l.open.Commit {
		if known, ok, err := b.recorded(ctx, l, before); ok || err != nil {
			return known, err
		}
	}
	return conflictsIn(before), nil
}

// resolve removes the conflicts in files that have changed since the conflicts were listed: a person who changed a file has seen its
// conflicts. If the earlier files cannot be read, all conflicts stay.
func (c *conflictList) resolve(ctx context.Context, b *brief, now kpt.Package) error {
	if c.files == nil {
		had, err := b.down.Read(ctx, c.commit, b.downstream)
		switch {
		case isGone(err), isUnreadable(err):
			return nil
		case err != nil:
			return err
		}
		c.files = digests(had, c.conflicts)
	}
	has := digests(now, c.conflicts)
	left := slices.DeleteFunc(slices.Clone(c.conflicts), func(one packagesv1.Conflict) bool { return has[one.File] != c.files[one.File] })
	if len(left) < len(c.conflicts) {
		c.conflicts = left
		c.name()
	}
	return nil
}

// digests are those of the files that have conflicts.
func digests(p kpt.Package, conflicts []packagesv1.Conflict) map[string]string {
	made := map[string]string{}
	for _, c := range conflicts {
		if file, ok := p[c.File]; ok && made[c.File] == "" {
			made[c.File] = contentDigest(kpt.Package{"": file})
		}
	}
	return made
}

// isGone tells whether an error says that a repository no longer has the commit or package to read.
func isGone(err error) bool {
	return errors.Is(err, pkgrepo.ErrNotFound) || errors.Is(err, git.ErrRefNotFound)
}

// compare computes from Git how the open change differs from the branch, and which conflicts are left in it.
func (k *variants) compare(ctx context.Context, obj *packagesv1.PackageVariant, b *brief, l *look, known conflictList) error {
	hasMoved := known.tree != l.open.Tree && len(known.conflicts) > 0
	if !hasMoved {
		known.tree = ""
	}
	key := describedKey{b.down.key, l.open.Tree, baseOf(branchOf(l.state)), known.tree}
	found, ok := k.shared.described.Get(key)
	if !ok {
		found = &packagesv1.ChangeStatus{}
		err := k.shared.inBudget(ctx, obj, func(ctx context.Context) error {
			slot, err := k.shared.Slots.Take(ctx, fair.Wish{Namespace: obj.Namespace})
			if err != nil {
				return fmt.Errorf("wait for a slot to compare packages: %w", err)
			}
			defer slot.Release()
			return b.compare(ctx, l, known, hasMoved, found)
		})
		const unknown = "Cannot list the changed files and objects: "
		switch {
		case isUnreadable(err):
			found.Message = fit(unknown+err.Error(), maxMessage)
		case err != nil:
			l.change.Message = fit(unknown+err.Error(), maxMessage)
			known.show(l.change)
			return fmt.Errorf("compare %s with the branch: %w", l.open.Workspace, err)
		}
		k.shared.described.Add(key, found)
	}
	found = found.DeepCopy() // The answer of the API server is read into the status.
	l.change.Message, l.change.Files, l.change.Objects = found.Message, found.Files, found.Objects
	if l.change.Conflicts, l.change.ConflictCount, l.change.ConflictDigest = found.Conflicts, found.ConflictCount, found.ConflictDigest; !hasMoved {
		known.show(l.change)
	}
	return nil
}

// compare reads the packages, and shows how they differ.
func (b *brief) compare(ctx context.Context, l *look, known conflictList, hasMoved bool, s *packagesv1.ChangeStatus) error {
	known.show(s)
	open, err := b.down.Read(ctx, l.open.Commit, b.downstream)
	if err != nil {
		return err
	}
	if hasMoved {
		if err := known.resolve(ctx, b, open); err != nil {
			return err
		}
		known.show(s)
	}
	branch := kpt.Package(nil)
	if r := branchOf(l.state); r != nil {
		if branch, err = b.down.Read(ctx, r.Commit, b.downstream); err != nil {
			return err
		}
	}
	(&made{difference: variant.Diff(branch, open, packagesv1.MaxChangedFiles)}).showDifference(s)
	return nil
}
