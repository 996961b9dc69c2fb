package packages

import (
	"fmt"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

func conflictsNamed(from, to int) (all []packagesv1.Conflict) {
	for i := range to - from {
		all = append(all, packagesv1.Conflict{File: "a.yaml", Path: fmt.Sprint(from + i), Base: "1", Upstream: "2", Local: "3"})
	}
	return all
}

// TestTheDigestNamesAllConflicts, those that a status has no room for among them, and is the same when it is read from the status.
func TestTheDigestNamesAllConflicts(t *testing.T) {
	t.Parallel()
	digests := map[string]int{}
	for _, count := range []int{1, 2, packagesv1.MaxConflicts, packagesv1.MaxConflicts + 1, packagesv1.MaxConflicts + 2} {
		all := newConflictList(conflictsNamed(0, count), conflictList{})
		status := &packagesv1.ChangeStatus{}
		all.show(status)
		again := conflictsIn(status)
		if again.digest != all.digest || again.count() != count || len(status.Conflicts) > packagesv1.MaxConflicts {
			t.Errorf("%d: %s and %d, from the status %s and %d", count, all.digest, count, again.digest, again.count())
		}
		digests[all.digest]++
		next := newConflictList(conflictsNamed(0, 1), again)
		if next.count() != count {
			t.Errorf("%d: the same place counts again: %d", count, next.count())
		}
		more := newConflictList(conflictsNamed(100, 101), again)
		if more.count() != count+1 || more.digest == all.digest {
			t.Errorf("%d: one more makes %d: %s", count, more.count(), more.digest)
		}
	}
	if len(digests) != 5 {
		t.Errorf("lists share digests: %v", digests)
	}
	none := newConflictList(nil, conflictList{})
	if none.digest != "" || none.words(packagesv1.ConflictLocal) != "" {
		t.Errorf("no conflict has digest %q", none.digest)
	}
}

func TestAMessageListsAFewConflicts(t *testing.T) {
	t.Parallel()
	all := newConflictList(conflictsNamed(0, 100), conflictList{})
	words := all.words(packagesv1.ConflictLocal)
	if strings.Count(words, "upstream: 2") != maxToldConflicts || !strings.Contains(words, "in 100 places") || !strings.HasSuffix(words, "And 84 more.\n") {
		t.Error(words)
	}
}
