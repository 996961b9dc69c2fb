package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/source"
)

// tagPrefix is where tags live.
const tagPrefix = "refs/tags/"

// Resolve finds the commit that the spec selects. A pinned commit is known without asking; everything else costs
// one listing of the references in question.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	if s.want.commit != "" {
		s.chosen = git.Want{Hash: s.want.commit, Branch: s.want.branch}
		return s.selection(s.want.short, s.want.commit), nil
	}
	remote, err := s.remote(ctx)
	if err != nil {
		return source.Selection{}, err
	}
	if s.want.bySemver {
		return s.resolveSemver(ctx, remote)
	}
	ref, err := s.find(ctx, remote)
	if err != nil {
		return source.Selection{}, explain(err)
	}
	s.chosen = git.Want{Hash: ref.Target(), Ref: ref.Name}
	return s.selection(s.want.short, ref.Target()), nil
}

func (s *session) selection(ref, hash string) source.Selection {
	return source.Selection{
		Revision:       revision.Format(ref, "sha1:"+hash),
		Name:           hash,
		Extension:      ".tar.gz",
		ConfigChecksum: s.checksum,
		Included:       s.included,
	}
}

// find looks up the reference by its full name.
func (s *session) find(ctx context.Context, remote git.Remote) (git.Ref, error) {
	refs, err := s.opener.Client.ListRefs(ctx, remote, s.want.full)
	if err != nil {
		return git.Ref{}, err
	}
	for _, ref := range refs {
		if ref.Name == s.want.full && (ref.Peeled != "" || !s.want.peeled) {
			return ref, nil
		}
	}
	name := s.want.full
	if s.want.peeled {
		name += peeledSuffix
	}
	return git.Ref{}, fmt.Errorf("couldn't find remote ref %q: check spec.ref", name)
}

// resolveSemver picks the tag of the newest version in the range. The tag's own text is the reference of the
// revision.
func (s *session) resolveSemver(ctx context.Context, remote git.Remote) (source.Selection, error) {
	refs, err := s.opener.Client.ListRefs(ctx, remote, tagPrefix)
	if err != nil {
		return source.Selection{}, explain(err)
	}
	byTag := make(map[string]git.Ref, len(refs))
	tags := make([]string, 0, len(refs))
	for _, ref := range refs {
		if tag, ok := strings.CutPrefix(ref.Name, tagPrefix); ok {
			byTag[tag] = ref
			tags = append(tags, tag)
		}
	}
	newest := s.want.semver.Latest(tags)
	if len(newest) == 0 {
		return source.Selection{}, explain(fmt.Errorf("no tag matches spec.ref.semver %q", s.spec.Reference.SemVer))
	}
	tag, err := s.newestCommit(ctx, remote, newest, byTag)
	if err != nil {
		return source.Selection{}, explain(err)
	}
	s.chosen = git.Want{Hash: byTag[tag].Target(), Ref: byTag[tag].Name}
	return s.selection(tag, byTag[tag].Target()), nil
}

// newestCommit breaks the tie between versions that differ in build metadata only: the youngest commit wins, as
// in Flux. A commit's time never changes, so that it is fetched once.
func (s *session) newestCommit(ctx context.Context, remote git.Remote, tags []string, refs map[string]git.Ref) (string, error) {
	if len(tags) == 1 {
		return tags[0], nil
	}
	var (
		best string
		when time.Time
	)
	for _, tag := range tags {
		committed, err := s.commitTime(ctx, remote, refs[tag])
		if err != nil {
			return "", err
		}
		if best == "" || committed.After(when) {
			best, when = tag, committed
		}
	}
	return best, nil
}

func (s *session) commitTime(ctx context.Context, remote git.Remote, ref git.Ref) (time.Time, error) {
	if known, ok := s.opener.times.Get(ref.Target()); ok {
		return known, nil
	}
	commit, err := s.opener.Client.Fetch(ctx, remote, git.Want{Hash: ref.Target(), Ref: ref.Name})
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = commit.Close() }()
	s.opener.times.Add(ref.Target(), commit.CommitterTime)
	return commit.CommitterTime, nil
}

// explain gives an error of the engine the reason under which Flux's users look for it.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, git.ErrCredential):
		return failure.Retry(sourcev1.AuthenticationFailedReason, err)
	case errors.Is(err, git.ErrEmptyRepository):
		return failure.Retry(sourcev1.EmptyGitRepositoryReason, err)
	case errors.Is(err, git.ErrUnsafeTree):
		return &source.StageError{Stage: source.StageArchive, Err: failure.Retry(sourcev1.IllegalPathReason, err)}
	default:
		return failure.Retry(sourcev1.GitOperationFailedReason, err)
	}
}
