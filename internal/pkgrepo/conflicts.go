package pkgrepo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// Conflicts names the conflicts that a commit of an open change was written with: their digest, and how many there are. The zero value is
// that there are none.
type Conflicts struct {
	Digest string
	Count  int
}

// String is the value of the trailer, empty for none.
func (c Conflicts) String() string {
	if c.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d", c.Digest, c.Count)
}

// digestForm is what a digest looks like.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parseConflicts reads the value of a trailer, which anybody may have written. One in another form counts as a conflict, so that an
// approver looks at the change.
func parseConflicts(value string) Conflicts {
	if value == "" {
		return Conflicts{}
	}
	digest, count, _ := strings.Cut(value, " ")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || !digestForm.MatchString(digest) {
		return Conflicts{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(value))), Count: 1}
	}
	return Conflicts{Digest: strings.Clone(digest), Count: n}
}

// maxDraft is how many commits of an open change are looked at.
const maxDraft = 1 << 8

// conflictsKey is what the memory knows the conflicts of an open change by.
type conflictsKey struct{ remote, tip, path, workspace, since string }

// noted are the conflicts that the newest commit of this program in an open change has, and that commit, empty for none.
type noted struct {
	commit    string
	conflicts Conflicts
}

// Conflicts returns the conflicts that the newest commit of this program in an open change has, and that commit; without one it is empty,
// and so it is if there is none above the commit since. People's commits on top of it may have resolved some of the conflicts. The status
// of an object can be lost, and this record is not.
func (r *Repository) Conflicts(ctx context.Context, open *Revision, since string) (found Conflicts, commit string, err error) {
	w, err := r.work()
	s := r.Snapshot()
	if err != nil || s == nil {
		return found, "", err
	}
	key := conflictsKey{s.known.remote, open.Commit, w.path(open.Package), open.Workspace, since}
	known, ok := recall[noted](w.depot.memory, key)
	if !ok {
		err = w.depot.client.Log(ctx, w.settings.Fetch, git.Want{Hash: open.Commit, Ref: open.Ref}, maxDraft, func(c git.Logged) bool {
			if c.Hash == since || c.Hash == s.Head {
				return false
			}
			n := parseNote(c.Message)
			if n.pkg == key.path && n.workspace == key.workspace && n.revision == "" {
				known = noted{strings.Clone(c.Hash), parseConflicts(n.conflicts)}
			}
			return known.commit == ""
		})
		if err != nil {
			return found, "", fmt.Errorf("read the commits of %s: %w", shown(open.Ref), err)
		}
		w.depot.memory.put(key, known, int64(len(key.tip)+len(key.path)+len(key.workspace)+len(known.conflicts.Digest)))
	}
	return known.conflicts, known.commit, nil
}
