package publish

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"sluice.dev/sluice/internal/credential"
)

// facts are what Git knows of a folder. Revision and time are a commit's, if the folder is.
type facts struct {
	source, revision, created string
	dirty                     bool
}

// look asks Git for the folder. One outside of a work tree has no facts.
func look(ctx context.Context, order Order, packed *layer) (facts, error) {
	folder, err := filepath.Abs(order.Folder)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return facts{}, err
	}
	repository, err := git.PlainOpenWithOptions(folder, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return facts{}, nil
	}
	if err != nil {
		return facts{}, fmt.Errorf("open the Git repository of %q: %w", order.Folder, err)
	}
	w := workTree{repository, packed}
	found := facts{source: w.origin()}
	different, commit, err := w.compare(ctx, folder)
	switch {
	case err != nil:
		return facts{}, fmt.Errorf("compare %q with its commit: %w", order.Folder, err)
	case len(different) > 0 && !order.AllowDirty:
		return facts{}, fmt.Errorf("%q is %w: %s", order.Folder, ErrDirty, few(different))
	case len(different) > 0:
		found.dirty = true
		return found, nil
	}
	found.created = commit.Committer.When.UTC().Format(time.RFC3339)
	name, err := w.name(commit.Hash, order.Tag)
	if err != nil {
		return facts{}, fmt.Errorf("name the revision of %q: %w", order.Folder, err)
	}
	if found.revision = "sha1:" + commit.Hash.String(); name != "" {
		found.revision = name + "@" + found.revision
	}
	return found, nil
}

// workTree is a Git repository, and what was packed of a folder in it.
type workTree struct {
	*git.Repository

	packed *layer
}

// origin is the URL that the repository was cloned from, without what is secret in it.
func (w workTree) origin() string {
	remote, err := w.Remote(git.DefaultRemoteName)
	if err != nil || len(remote.Config().URLs) == 0 {
		return ""
	}
	return credential.CleanURL(remote.Config().URLs[0])
}

// name is what a commit is known under: the Git tag of the version that is pushed, the branch that is checked out, or another tag.
func (w workTree) name(commit plumbing.Hash, pushed string) (string, error) {
	var tags []string
	all, err := w.Tags()
	if err != nil {
		return "", err
	}
	err = all.ForEach(func(tag *plumbing.Reference) error {
		if at, err := w.ResolveRevision(plumbing.Revision(tag.Name())); err == nil && *at == commit {
			tags = append(tags, tag.Name().Short())
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, same := range []string{pushed, "v" + pushed} {
		if slices.Contains(tags, same) {
			return same, nil
		}
	}
	head, err := w.Head()
	switch {
	case err != nil:
		return "", err
	case head.Name().IsBranch():
		return head.Name().Short(), nil
	case len(tags) > 0:
		return slices.Min(tags), nil
	}
	return "", nil
}

// compare tells what of the folder differs from the commit that is checked out.
func (w workTree) compare(ctx context.Context, folder string) (different []string, commit *object.Commit, err error) {
	head, err := w.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return []string{"there is no commit"}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if commit, err = w.CommitObject(head.Hash()); err != nil {
		return nil, nil, err
	}
	committed, err := w.committed(commit, folder)
	if err != nil {
		return nil, nil, err
	}
	different, err = w.packed.differs(ctx, committed)
	return different, commit, err
}

// committed are the files that the commit has in the folder.
func (w workTree) committed(commit *object.Commit, folder string) (map[string]object.TreeEntry, error) {
	work, err := w.Worktree()
	if err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(work.Filesystem.Root())
	if err != nil {
		return nil, err
	}
	at, err := filepath.Rel(top, folder)
	if err != nil {
		return nil, err
	}
	tree, err := commit.Tree()
	if err == nil && at != "." {
		tree, err = tree.Tree(filepath.ToSlash(at))
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return entries(tree)
}
