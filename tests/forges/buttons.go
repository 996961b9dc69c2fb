package forges

import (
	"path/filepath"
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// Way is how the merge button merges.
type Way string

// The ways of the merge button.
const (
	Merge  Way = "merge"
	Squash Way = "squash"
	Rebase Way = "rebase"
)

// Merge has somebody press the merge button, and the forge delete the branch afterwards where that is wished. What cannot be
// merged without a conflict ends the test.
func (f *Forge) Merge(number int, way Way, by string, deletes bool) {
	f.t.Helper()
	f.merge(number, way, by, deletes)
	f.moved()
}

func (f *Forge) merge(number int, way Way, by string, deletes bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	p := f.pulls[number-1]
	repository := f.repos[p.repo]
	if p.State != "open" {
		f.t.Fatalf("request %d is %s", number, p.State)
	}
	for {
		base := repository.Raw("rev-parse", p.Base)
		_, err := repository.Repository.Raw("update-ref", "refs/heads/"+p.Base, f.result(p, way, base), base)
		if err == nil {
			break
		}
		if repository.Raw("rev-parse", p.Base) == base {
			f.t.Fatalf("merge request %d: %v", number, err)
		} // Else somebody has pushed meanwhile.
	}
	if deletes {
		repository.Raw("update-ref", "-d", "refs/heads/"+p.Head)
	}
	p.State, p.By = "merged", by
	f.touch(p)
}

// result is the commit that a merge makes on the base.
func (f *Forge) result(p *Pull, way Way, base string) string {
	f.t.Helper()
	repository := f.repos[p.repo]
	head := repository.Raw("rev-parse", p.Head)
	switch way {
	case Squash:
		return repository.CommitTree(f.merged(p, "", base, head), p.Title, base)
	case Rebase:
		made := base
		for commit := range strings.FieldsSeq(repository.Raw("rev-list", "--reverse", base+".."+head)) {
			message := repository.Raw("show", "--no-patch", "--format=%B", commit)
			made = repository.CommitTree(f.merged(p, commit+"^", made, commit), message, made)
		}
		return made
	case Merge:
	}
	return repository.CommitTree(f.merged(p, "", base, head), "Merge pull request from "+p.Head, base, head)
}

// merged is the tree of a merge, file by file.
func (f *Forge) merged(p *Pull, base, ours, theirs string) string {
	f.t.Helper()
	repository := f.repos[p.repo]
	if base == "" {
		base = repository.Raw("merge-base", ours, theirs)
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(f.t.TempDir(), "index")}
	var tree []byte
	for _, args := range [][]string{{"read-tree", "-i", "-m", "--aggressive", base, ours, theirs}, {"write-tree"}} {
		var err error
		if tree, err = upstream.Git(f.t.Context(), repository.Dir(), env, args...); err != nil {
			f.t.Fatalf("merge request %d: %v", p.Number, err)
		}
	}
	return strings.TrimSpace(string(tree))
}

// Close has somebody close a request, and Reopen open it again.
func (f *Forge) Close(number int, by string) {
	f.Change(number, func(p *Pull) { p.State, p.By = "closed", by })
}

// Reopen has somebody open a request again.
func (f *Forge) Reopen(number int) {
	f.Change(number, func(p *Pull) { p.State, p.By = "open", "" })
}
