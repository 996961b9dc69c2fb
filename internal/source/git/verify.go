package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/verify"
)

const (
	// maxSigned is how many commits are remembered with their tags, so that other keys can be tried on them, and
	// maxSignedBytes the size of those.
	maxSigned      = 256
	maxSignedBytes = 16 << 10
)

// whom gives the entries with the keys that the spec trusts; nil when it asks for no proof.
func (s *session) whom(ctx context.Context) (map[string][]byte, error) {
	spec := s.spec.Verification
	if spec == nil {
		return nil, nil
	}
	if spec.VerifyTag() && !s.want.isTag() {
		return nil, refuted(failure.Stall(sourcev1.InvalidVerificationModeReason,
			errors.New("cannot verify tag object's signature if a tag reference is not specified: set spec.ref.tag or semver, or verify HEAD")))
	}
	entries, err := s.opener.Credentials.Data(ctx, s.namespace, spec.SecretRef.Name, "spec.verify.secretRef")
	if err != nil {
		return nil, refuted(err)
	}
	return entries, nil
}

// refuted says that nothing is proven.
func refuted(err error) error { return &source.StageError{Stage: source.StageVerify, Err: err} }

// configChecksum adds what proves a commit to what shapes its artifact.
func (s *session) configChecksum() (string, error) {
	if s.trusted == nil {
		return s.shape, nil
	}
	return source.ConfigChecksum("gitrepository", struct {
		Shape   string                       `json:"shape"`
		Mode    sourcev1.GitVerificationMode `json:"mode"`
		Trusted string                       `json:"trusted"`
	}{s.shape, s.spec.Verification.GetMode(), verify.GitFingerprint(s.trusted)})
}

// Verify implements source.Verifier: those who are trusted must have signed the commit, the tag, or both. The result lists
// them as Flux does.
func (s *session) Verify(ctx context.Context, _ source.Selection) (string, error) {
	if s.trusted == nil {
		return "", nil
	}
	tag := strings.TrimPrefix(s.chosen.Ref, tagPrefix)
	if s.spec.Verification.VerifyTag() && s.chosen.Tag == "" {
		return "", failure.Retry(sourcev1.InvalidGitObjectReason, fmt.Errorf("cannot verify signature of tag '%s' since it is not signed", tag))
	}
	trusted, err := verify.NewGitKeys(s.trusted)
	if err != nil {
		return "", failure.Retry(sourcev1.VerificationErrorReason,
			fmt.Errorf("spec.verify: secret '%s/%s': %w", s.namespace, s.spec.Verification.SecretRef.Name, err))
	}
	signed, err := s.signed(ctx)
	if err != nil {
		return "", &source.StageError{Stage: source.StageFetch, Err: explain(err)}
	}
	var by strings.Builder
	if s.spec.Verification.VerifyTag() {
		tag += "@" + s.chosen.Tag
		key, err := trusted.VerifyTag(signed.Tag, strings.TrimPrefix(s.chosen.Ref, tagPrefix), s.chosen.Hash)
		if errors.Is(err, verify.ErrUnsigned) {
			return "", failure.Retry(sourcev1.InvalidGitObjectReason, fmt.Errorf("cannot verify signature of tag '%s' since it is not signed: %w", tag, err))
		}
		if err != nil {
			return "", failure.Retry(sourcev1.InvalidTagSignatureReason, fmt.Errorf("signature verification of tag '%s' failed: %w", tag, err))
		}
		fmt.Fprintf(&by, "\n\t- tag '%s' with key '%s'", tag, key)
	}
	if s.spec.Verification.VerifyHEAD() {
		key, err := trusted.VerifyCommit(signed.Commit)
		if err != nil {
			return "", failure.Retry(sourcev1.InvalidCommitSignatureReason, fmt.Errorf("signature verification of commit '%s' failed: %w", s.chosen.Hash, err))
		}
		fmt.Fprintf(&by, "\n\t- commit '%s' with key '%s'", s.chosen.Hash, key)
	}
	return by.String(), nil
}

// signed asks once for the objects.
func (s *session) signed(ctx context.Context) (git.Signed, error) {
	remote, err := s.remote(ctx)
	if err != nil {
		return git.Signed{}, err
	}
	want := s.chosen
	if !s.spec.Verification.VerifyTag() {
		want.Tag = ""
	}
	key := strings.Join([]string{remote.URL, remote.Credential.Identity(), want.Hash, want.Tag}, "\x00")
	if known, ok := s.opener.signed.Get(key); ok {
		return known, nil
	}
	signed, err := s.opener.Client.Signed(ctx, remote, want)
	if err == nil && len(signed.Commit)+len(signed.Tag) <= maxSignedBytes {
		s.opener.signed.Add(key, signed)
	}
	return signed, err
}
