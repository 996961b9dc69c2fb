package git

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// maxTitle is how many characters of a commit's subject events show.
const maxTitle = 50

// Share implements source.Sharer. Who has just been told of a commit may have what was made of it for others of the same
// credential. A pinned commit was not asked for, nor were submodules.
func (s *session) Share(ctx context.Context, _ source.Selection) string {
	remote, err := s.remote(ctx)
	if err != nil || s.chosen.Ref == "" || s.spec.RecurseSubmodules {
		return ""
	}
	return remote.Key() + " " + s.key()
}

// key names the commit and what shapes its artifact.
func (s *session) key() string { return s.chosen.Hash + " " + s.shape }

// Fetch brings the chosen commit and lays the includes over its tree, unless that is what is stored already.
func (s *session) Fetch(ctx context.Context, _ source.Selection, have string) (source.Content, error) {
	key := s.key()
	if key == have {
		return source.Content{Key: key}, nil
	}
	remote, err := s.remote(ctx)
	if err != nil {
		return source.Content{}, err
	}
	want := s.chosen
	want.Tag = ""
	keep, err := archive.RootOnly(ctx, s.spec.Ignore)
	if err != nil {
		return source.Content{}, failure.Retry("SourceIgnoreError", err)
	}
	switch {
	case s.spec.RecurseSubmodules:
	case len(s.spec.SparseCheckout) > 0: // Whether a path leads somewhere is not for the rules to say.
		want.Paths = s.spec.SparseCheckout
	default:
		want.Keep = keep
	}
	commit, err := s.opener.Client.Fetch(ctx, remote, want)
	if err != nil {
		return source.Content{}, explain(err)
	}
	closers := []func() error{commit.Close}
	closeAll := func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	files, err := s.files(ctx, remote, commit, keep, &closers)
	if err != nil {
		return source.Content{}, errors.Join(explain(err), closeAll())
	}
	mounts, err := s.mounts(ctx, &closers)
	if err != nil {
		return source.Content{}, errors.Join(err, closeAll())
	}
	if len(mounts) > 0 {
		if files, err = archive.Overlay(files, s.opener.Limits, mounts...); err != nil {
			copied := failure.Retry(sourcev1.CopyFailureReason, fmt.Errorf("copy spec.include: %w", err))
			return source.Content{}, errors.Join(&source.StageError{Stage: source.StageArchive, Err: copied}, closeAll())
		}
	}
	content := source.Content{Tree: files, Ignore: s.spec.Ignore, Key: key, Title: title(commit.Subject), Close: closeAll}
	if parts := commit.Parts(); parts != nil {
		content.Parts = parts
	}
	return content, nil
}

// files are those of the commit and its submodules that the spec selects. What the rules leave out of the root is left out here
// already, for it may not have been fetched, and the bytes of an archive must not tell.
func (s *session) files(
	ctx context.Context, remote git.Remote, commit *git.Commit, keep func(string, bool) bool, closers *[]func() error,
) (all *tree.Tree, err error) {
	all = commit.Tree()
	if s.spec.RecurseSubmodules {
		if all, err = s.withSubmodules(ctx, remote, commit, closers); err != nil {
			return nil, err
		}
	}
	if all, err = all.Only(s.spec.SparseCheckout); err != nil {
		return nil, fmt.Errorf("spec.sparseCheckout: %w", err)
	}
	if keep == nil {
		return all, nil
	}
	return all.Keep(keep)
}

// mounts opens the included artifacts, in the order of the spec: each once, and all of them within the limits of one.
func (s *session) mounts(ctx context.Context, closers *[]func() error) ([]archive.Mount, error) {
	mounts := make([]archive.Mount, 0, len(s.included))
	opened := map[digest.Digest]*archive.Tree{}
	for i, included := range s.included {
		include := s.spec.Include[i]
		tree, err := s.open(ctx, included, opened)
		if errors.Is(err, storage.ErrNotFound) {
			// It was superseded while the commit was fetched; the next run sees what took its place.
			gone := failure.Wait(sourcev1.NoArtifactReason, time.Second, fmt.Errorf("include %q has changed meanwhile: %w", include.GitRepositoryRef.Name, err))
			return nil, &source.StageError{Stage: source.StageInclude, Err: gone}
		}
		if err != nil {
			return nil, &source.StageError{
				Stage: source.StageArchive,
				Err:   failure.Retry(sourcev1.CopyFailureReason, fmt.Errorf("open include %q: %w", include.GitRepositoryRef.Name, err)),
			}
		}
		if opened[included.Digest] == nil {
			opened[included.Digest] = tree
			*closers = append(*closers, tree.Close)
		}
		mounts = append(mounts, archive.Mount{Tree: tree.Tree, From: include.FromPath, To: include.GetToPath()})
	}
	return mounts, nil
}

func (s *session) open(ctx context.Context, artifact storage.Artifact, opened map[digest.Digest]*archive.Tree) (_ *archive.Tree, err error) {
	if tree := opened[artifact.Digest]; tree != nil {
		return tree, nil
	}
	limits := s.opener.Limits
	for _, other := range opened {
		if limits, err = limits.Beside(other); err != nil {
			return nil, err
		}
	}
	body, err := s.opener.Artifacts.Body(ctx, artifact)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return archive.Open(ctx, body, s.opener.TempDir, limits)
}

// title shortens a commit's subject as Flux's events do.
func title(subject string) string {
	runes := []rune(subject)
	if len(runes) <= maxTitle {
		return subject
	}
	return string(runes[:maxTitle]) + "..."
}
