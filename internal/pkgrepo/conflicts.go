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

// Conflicts is the digest and the number of the conflicts with which a commit of an open change was written. The zero value means none.
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

// digestForm matches a digest.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parseConflicts reads the value of a trailer, which people can forge. Another form counts as a conflict, so that an
// approver reviews the change.
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

// conflictsKey is the key of an open change's conflicts in the memory.
type conflictsKey struct{ remote, tip, path, workspace, since string }

// noted are the conflicts that the newest commit of this program in an open change has, and that commit, empty for none.
type noted struct {
	commit    string
	conflicts Conflicts
}

// Conflicts returns the conflicts of this program's newest commit in an open change, and that commit. The commit is empty if there is none,
// or none newer than the commit since. People's commits on top may have resolved some of the conflicts. Unlike the status of an object,
// this record is not lost.
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
