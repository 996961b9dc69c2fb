package packages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// maxDescents is the number of pairs of commits for which the cache has whether one is in the history of the other.
const maxDescents = 1024

// descent asks whether a commit of a repository comes after another one.
type descent struct {
	repository    types.NamespacedName
	commit, after string
}

// older is the reason why the chosen upstream content is older than the published content, or not known to be newer.
type older struct {
	// reason is one of GoesBack; empty where the upstream content does not go back.
	reason, message string
	// err is a temporary failure of the comparison.
	err error
}

// compareUpstream finds out whether the chosen upstream revision is older than the published one, also if another variant published that.
// A failure counts as older. Sluice drafts the change in each case.
func (k *variants) compareUpstream(ctx context.Context, obj *packagesv1.PackageVariant, b *brief, l *look) {
	branch := branchOf(l.state)
	if branch == nil || branch.Facts.Lock == nil || b.makes(branch) {
		return
	}
	lock, isOlder := branch.Facts.Lock, false
	err := k.shared.inBudget(ctx, obj, func(ctx context.Context) (err error) {
		isOlder, err = k.shared.isOlder(ctx, b, lock)
		return err
	})
	from, to := nameOf(lock.Ref, lock.Commit), nameOf(b.blueprint.Ref, b.blueprint.Commit)
	switch {
	case isOlder:
		l.older.reason = packagesv1.OlderUpstreamReason
		l.older.message = fmt.Sprintf("Upstream went back from %s to %s. Approve the change if you want the older content, or restore upstream", from, to)
	case err != nil:
		l.older.reason = packagesv1.NotComparableReason
		l.older.message = fmt.Sprintf("Upstream %s is not known to be newer than %s, which is published. Approve the change if you want it, or correct upstream", to, from)
		if !errors.Is(err, errNotComparable) {
			l.older.err = err
		}
	}
}

// nameOf names an upstream revision.
func nameOf(ref, commit string) string {
	return fmt.Sprintf("%s (commit %.12s)", fit(ref, maxLabel), commit)
}

// errNotComparable says that neither of two revisions is known to be the older one.
var errNotComparable = errors.New("neither revision is known to be older")

// isOlder tells whether the chosen upstream revision is older than the one that a lock names: of two tags of the package, by their
// versions; else by their commits. The error is errNotComparable where neither comes after the other, or one cannot be read.
func (s Shared) isOlder(ctx context.Context, b *brief, lock *kpt.Lock) (bool, error) {
	if lock.Commit == b.blueprint.Commit {
		return false, nil
	}
	isSame := variant.SameRepository(lock.Repo, b.blueprint.Repo) && path.Join("/", lock.Directory) == b.blueprint.Directory
	if isTag := strings.HasPrefix(b.ref, "refs/tags/"); isSame && isTag && path.Dir(lock.Ref) == path.Dir(b.blueprint.Ref) {
		if order, ok := pkgrepo.CompareRevisions(path.Base(b.blueprint.Ref), path.Base(lock.Ref)); ok && order != 0 {
			return order < 0, nil
		}
	}
	isAfter, err := s.comesAfter(ctx, b.up, b.blueprint.Commit, b.ref, lock.Commit)
	if isAfter || err != nil {
		return false, err
	}
	isBefore, err := s.comesAfter(ctx, b.up, lock.Commit, "", b.blueprint.Commit)
	if err == nil && !isBefore {
		err = errNotComparable
	}
	return isBefore, err
}

// comesAfter tells whether a commit provably has another commit in its history.
func (s Shared) comesAfter(ctx context.Context, m *mirror, commit, ref, after string) (bool, error) {
	key := descent{m.key, commit, after}
	if known, ok := s.descents.Get(key); ok {
		return known, nil
	}
	err := m.Reaches(ctx, commit, ref, after)
	if err != nil && !errors.Is(err, git.ErrRefNotFound) && !errors.Is(err, git.ErrLimit) {
		return false, fmt.Errorf("compare commit %s with %s: %w", commit, after, err)
	}
	s.descents.Add(key, err == nil)
	return err == nil, nil
}
