package pkgrepo

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// Pristine is a commit with a package as this program made it, without edits of people.
type Pristine struct {
	Commit string
	// Note is the value of Message.Pristine. People can forge it.
	Note string
}

// LastPristine finds the newest commit that has the package without edits of people and whose note begins with the words. It looks at the
// newest MaxWalk commits of the history of a commit, and at the draft that the package was last published from, where that is still
// there. The error is ErrNotFound where there is none, and one of package git.
func (r *Repository) LastPristine(ctx context.Context, commit, pkg, words string) (Pristine, error) {
	w, err := r.work()
	if err != nil {
		return Pristine{}, err
	}
	for range 2 {
		var found Pristine
		draft, path := "", w.path(pkg)
		tip := git.Want{Hash: commit, Ref: r.refOf(commit, pkg)}
		err := w.depot.client.Log(ctx, w.settings.Fetch, tip, w.depot.options.MaxWalk, func(c git.Logged) bool {
			n := parseNote(c.Message)
			if n.pkg != path {
				return true
			}
			if n.pristine != "" && strings.HasPrefix(n.pristine, words) {
				found = Pristine{c.Hash, n.pristine}
				return false
			}
			draft = n.change
			return draft == ""
		})
		if err != nil || found.Commit != "" {
			return found, err
		}
		if commit = draft; draft == "" {
			break
		}
	}
	return Pristine{}, fmt.Errorf("package %s without edits: %w", shown(pkg), ErrNotFound)
}
