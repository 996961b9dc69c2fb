package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
)

// conflictList are the conflicts of a commit of the open change.
type conflictList struct {
	commit, tree string
	conflicts    []packagesv1.Conflict
	// unlisted is the number of conflicts beyond the limit of a status, or known by number only.
	unlisted int
	// digest covers all conflicts, including unlisted ones; empty without conflicts.
	digest string
	// files are the digests of the files that have conflicts; nil if they must be read from the commit.
	files map[string]string
}

// newConflictList lists the conflicts of an update, and the earlier conflicts of the open change in other fields: a later update has
// another base and does not detect these again.
func newConflictList(met []packagesv1.Conflict, before conflictList) conflictList {
	c := conflictList{conflicts: met, unlisted: before.unlisted, digest: before.digest}
	again := map[[3]string]bool{}
	for i := range met {
		again[placeOf(&met[i])] = true
	}
	for i := range before.conflicts {
		if !again[placeOf(&before.conflicts[i])] {
			c.conflicts = append(slices.Clip(c.conflicts), before.conflicts[i])
		}
	}
	c.name()
	return c
}

func placeOf(c *packagesv1.Conflict) [3]string { return [3]string{c.File, c.Resource, c.Path} }

// conflictsIn are the conflicts that a status lists.
func conflictsIn(s *packagesv1.ChangeStatus) conflictList {
	c := conflictList{
		commit: s.Commit, tree: s.Tree, conflicts: s.Conflicts, unlisted: int(s.ConflictCount) - len(s.Conflicts), digest: s.ConflictDigest,
	}
	if c.digest == "" {
		c.name() // It was written before there were digests.
	}
	return c
}

// count is how many there are.
func (c *conflictList) count() int { return len(c.conflicts) + c.unlisted }

// name gives the list its digest. Conflicts that are not listed count by the digest of the list that had them.
func (c *conflictList) name() {
	if c.count() == 0 {
		c.digest = ""
		return
	}
	all := []any{c.conflicts}
	if c.unlisted > 0 {
		all = append(all, c.unlisted, c.digest)
	}
	text, _ := json.Marshal(all) // They are texts and numbers.
	c.digest = fmt.Sprintf("sha256:%x", sha256.Sum256(text))
}

// trim drops the conflicts that a status has no room for, as it is kept for as long as the variant is there. The digest still names them.
func (c *conflictList) trim() {
	few := slices.Clone(c.conflicts[:min(len(c.conflicts), packagesv1.MaxConflicts)])
	c.conflicts, c.unlisted = few, c.count()-len(few)
}

// show shows the conflicts in a status.
func (c *conflictList) show(s *packagesv1.ChangeStatus) {
	s.Conflicts = c.conflicts[:min(len(c.conflicts), packagesv1.MaxConflicts)]
	s.ConflictCount, s.ConflictDigest = capped(c.count()), c.digest
}

// record is how a commit names them.
func (c *conflictList) record() pkgrepo.Conflicts {
	return pkgrepo.Conflicts{Digest: c.digest, Count: c.count()}
}

// maxToldConflicts bounds the conflicts that a commit's message lists.
const maxToldConflicts = 16

// words lists the conflicts in a commit's message, with their three values.
func (c *conflictList) words(policy packagesv1.ConflictPolicy) string {
	if c.count() == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Upstream and people changed the same value in %s. Conflict policy: %s.\n", counted(c.count(), "place"), policy)
	for _, one := range c.conflicts[:min(len(c.conflicts), maxToldConflicts)] {
		fmt.Fprintf(&text, "\n%s\n  before:   %s\n  upstream: %s\n  here:     %s\n", strings.TrimSpace(one.File+" "+one.Resource+" "+one.Path), one.Base, one.Upstream, one.Local)
	}
	if more := c.count() - min(len(c.conflicts), maxToldConflicts); more > 0 {
		fmt.Fprintf(&text, "\nAnd %d more.\n", more)
	}
	return text.String()
}

// recorded returns the conflicts that Git records for the open change, if the status is older: the status was lost, or the process died
// before its report. The result has no list, unless the record has the digest of the status: an update then took over these conflicts, and
// changed files itself. It is false if the status is up to date.
func (b *brief) recorded(ctx context.Context, l *look, before *packagesv1.ChangeStatus) (conflictList, bool, error) {
	record, commit, err := b.down.Conflicts(ctx, l.open, before.Commit)
	if err != nil || commit == "" || record.Count == 0 {
		return conflictList{}, false, err
	}
	if record.Digest == before.ConflictDigest {
		known := conflictsIn(before)
		known.commit, known.tree = commit, commit // A commit's name also names its tree.
		return known, true, nil
	}
	return conflictList{commit: commit, unlisted: record.Count, digest: record.Digest}, true, nil
}

// conflicts returns those of an open change, from the status of its variant if that describes the same commit. Otherwise, for a change to
// publish, it reads the record in Git, or uses the status of the earlier commit: squashing the commits of a draft removes the record.
func (k *revisions) conflicts(ctx context.Context, obj *packagesv1.PackageRevision, m *mirror, seen *pkgrepo.Revision) (pkgrepo.Conflicts, error) {
	if packagesv1.Lifecycle(seen.Lifecycle).IsPublished() {
		return pkgrepo.Conflicts{}, nil
	}
	var before pkgrepo.Conflicts
	if namespace, name, ok := strings.Cut(seen.Facts.Variant, "/"); ok && namespace == m.key.Namespace {
		var v packagesv1.PackageVariant
		err := k.shared.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &v)
		switch change := v.Status.Change; {
		case err != nil && !apierrors.IsNotFound(err):
			return pkgrepo.Conflicts{}, fmt.Errorf("get PackageVariant %s: %w", seen.Facts.Variant, err)
		case err == nil && change != nil && change.Workspace == seen.Workspace:
			known := conflictsIn(change)
			if before = known.record(); change.Commit == seen.Commit {
				return before, nil
			}
		}
	}
	if obj.Spec.GetLifecycle() != packagesv1.LifecyclePublished {
		return pkgrepo.Conflicts{}, nil
	}
	found, _, err := m.Conflicts(ctx, seen, "")
	return cmp.Or(found, before), err
}

// areConflictsApproved returns an error if the approver has not named the digest of the change's conflicts.
func (s *sight) areConflictsApproved(obj *packagesv1.PackageRevision) error {
	if s.conflicts.Count == 0 || obj.Spec.ApprovedConflicts == s.conflicts.Digest {
		return nil
	}
	return failure.Wait(packagesv1.ConflictsNotApprovedReason, 0, fmt.Errorf(
		"upstream and people changed the same value in %s; review the conflicts in status.change of the PackageVariant, then set spec.approvedConflicts to %s",
		counted(s.conflicts.Count, "place"), s.conflicts.Digest))
}

// changesOf returns the request for the PackageRevision of a variant's open change.
func changesOf(_ context.Context, obj client.Object) []reconcile.Request {
	v, ok := obj.(*packagesv1.PackageVariant)
	if !ok || v.Status.Change == nil || v.Status.Change.PackageRevision == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: in(v, v.Status.Change.PackageRevision)}}
}

// conflictsMoved passes variants whose conflict digest has changed.
func conflictsMoved() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, _ := e.ObjectOld.(*packagesv1.PackageVariant)
			is, _ := e.ObjectNew.(*packagesv1.PackageVariant)
			if was == nil || is == nil || is.Status.Change == nil {
				return false
			}
			before := was.Status.Change
			return before == nil && is.Status.Change.ConflictDigest != "" || before != nil && before.ConflictDigest != is.Status.Change.ConflictDigest
		},
	}
}

// conflicts are those of the open change.
func (l *look) conflicts() conflictList {
	if l.change == nil {
		return conflictList{}
	}
	return conflictsIn(l.change)
}
