package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/source"
)

// tagPrefix is where tags live.
const tagPrefix = "refs/tags/"

// Resolve finds the commit that the spec selects. A pinned commit is known without asking; everything else costs
// one listing of the references in question. Whether a pin is where the spec says, and which of several equal versions
// is the youngest, is for Confirm to find out.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	if s.want.commit != "" {
		s.chosen = git.Want{Hash: s.want.commit, Branch: s.want.branch}
		selected := s.selection(s.want.short, s.want.commit)
		if s.want.full != "" {
			selected.Proof = fmt.Sprintf("%s in %s of %s", s.want.commit, s.want.name(), credential.CleanURL(s.spec.URL))
		}
		return selected, nil
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
	s.choose(ref)
	return s.selection(s.want.short, ref.Target()), nil
}

func (s *session) choose(ref git.Ref) {
	s.chosen = git.Want{Hash: ref.Target(), Ref: ref.Name}
	if ref.Peeled != "" {
		s.chosen.Tag = ref.Hash
	}
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
	return git.Ref{}, fmt.Errorf("couldn't find remote ref %q: check spec.ref", s.want.name())
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
	for _, tag := range s.want.semver.Latest(tags) {
		s.newest = append(s.newest, byTag[tag])
	}
	if len(s.newest) == 0 {
		return source.Selection{}, explain(fmt.Errorf("no tag matches spec.ref.semver %q", s.spec.Reference.SemVer))
	}
	selected, err := s.youngest(func(ref git.Ref) (time.Time, error) {
		known, ok := s.opener.times.Get(timeKey(remote, ref))
		if !ok && len(s.newest) > 1 {
			return known, errUnknownTime
		}
		return known, nil
	})
	if errors.Is(err, errUnknownTime) {
		return source.Selection{}, nil
	}
	return selected, err
}

// errUnknownTime says that a commit's time has to be asked for.
var errUnknownTime = errors.New("time of a commit is not known")

// youngest breaks the tie between versions that differ in build metadata only: the youngest commit wins, as in Flux.
func (s *session) youngest(committed func(git.Ref) (time.Time, error)) (source.Selection, error) {
	var best git.Ref
	var when time.Time
	for _, ref := range s.newest {
		at, err := committed(ref)
		if err != nil {
			return source.Selection{}, err
		}
		if best.Name == "" || at.After(when) {
			best, when = ref, at
		}
	}
	s.choose(best)
	return s.selection(strings.TrimPrefix(best.Name, tagPrefix), best.Target()), nil
}

// Confirm chooses between equal versions, or proves that a pinned commit is where the spec says.
func (s *session) Confirm(ctx context.Context, selected source.Selection) (source.Selection, error) {
	remote, err := s.remote(ctx)
	if err != nil {
		return source.Selection{}, err
	}
	if s.want.bySemver {
		selected, err = s.youngest(func(ref git.Ref) (time.Time, error) { return s.commitTime(ctx, remote, ref) })
	} else {
		err = s.prove(ctx, remote, selected.Proof)
	}
	return selected, explain(err)
}

// timeKey names a commit where it was seen: a server may name one that it does not have.
func timeKey(remote git.Remote, ref git.Ref) string { return remote.Key() + ref.Target() }

// commitTime asks once: a commit's time never changes.
func (s *session) commitTime(ctx context.Context, remote git.Remote, ref git.Ref) (time.Time, error) {
	if known, ok := s.opener.times.Get(timeKey(remote, ref)); ok {
		return known, nil
	}
	committed, err := s.opener.Client.CommitTime(ctx, remote, git.Want{Hash: ref.Target(), Ref: ref.Name})
	if err == nil {
		s.opener.times.Add(timeKey(remote, ref), committed)
	}
	return committed, err
}

// prove asks once, too, for the record has the proof only when the commit has been fetched.
func (s *session) prove(ctx context.Context, remote git.Remote, proof string) error {
	key := remote.URL + "\x00" + remote.Credential.Identity() + "\x00" + proof
	if s.opener.proven.Contains(key) {
		return nil
	}
	tip, err := s.find(ctx, remote)
	if err != nil {
		return err
	}
	if err := s.opener.Client.Reaches(ctx, remote, git.Want{Hash: tip.Target(), Ref: tip.Name}, s.want.commit); err != nil {
		return err
	}
	s.opener.proven.Add(key, struct{}{})
	return nil
}

// explain gives an error of the engine the reason under which Flux's users look for it.
func explain(err error) error {
	switch {
	case err == nil || failure.Of(err).Reason != "":
		return err
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
