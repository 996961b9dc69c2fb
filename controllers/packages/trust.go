package packages

import (
	"context"
	"fmt"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/verify"
)

// maxVerdicts is the number of commits and tags of a repository whose verification is cached.
const maxVerdicts = 1024

// trust is the mode and the keys of spec.verify of a GitRepository. The object is reused while mode and keys stay the same.
type trust struct {
	policy      sourcev1.GitRepositoryVerification
	source      string
	fingerprint string
	keys        *verify.GitKeys
	verdicts    *lru.Cache[proof, error]
}

// proof is a commit and, if the tag must be signed, the name and the id of the tag that points to it.
type proof struct{ commit, tag, id string }

// trust returns the trust of a GitRepository; nil without spec.verify. It is that of the known mirror if mode and keys are the same.
func (k *repositories) trust(ctx context.Context, source *sourcev1.GitRepository, known *mirror) (*trust, error) {
	policy := source.Spec.Verification
	if policy == nil {
		return nil, nil
	}
	const field = "spec.verify.secretRef"
	data, err := k.shared.Credentials.Data(ctx, source.Namespace, policy.SecretRef.Name, field)
	if err != nil {
		return nil, failure.Retry(packagesv1.SecretNotFoundReason, fmt.Errorf("GitRepository %s: %w", source.Name, err))
	}
	made := &trust{policy: *policy, source: source.Name, fingerprint: verify.GitFingerprint(data)}
	if known != nil && known.trust != nil && known.trust.policy == made.policy && known.trust.fingerprint == made.fingerprint {
		return known.trust, nil
	}
	if made.keys, err = verify.NewGitKeys(data); err != nil {
		return nil, failure.Retry(packagesv1.VerificationKeysInvalidReason, fmt.Errorf(
			"GitRepository %s: %s: Secret %s: %w", source.Name, field, policy.SecretRef.Name, err))
	}
	made.verdicts, err = lru.New[proof, error](maxVerdicts)
	return made, err
}

// verify returns an error unless a commit has the signatures that the GitRepository requires. The ref is the branch or tag by which the
// commit was chosen.
func (m *mirror) verify(ctx context.Context, ref, commit string) error {
	t := m.trust
	if t == nil {
		return nil
	}
	is := proof{commit: commit}
	if t.policy.VerifyTag() {
		is.tag, is.id = strings.TrimPrefix(ref, "refs/tags/"), m.TagID(ref, commit)
	}
	wrong, isKnown := t.verdicts.Get(is)
	if !isKnown {
		signed, err := m.Signed(ctx, commit, is.id)
		if err != nil {
			return fmt.Errorf("read the signature of commit %s: %w", commit, err)
		}
		wrong = t.judge(is, signed)
		t.verdicts.Add(is, wrong)
	}
	if wrong == nil {
		return nil
	}
	return failure.Wait(packagesv1.VerificationFailedReason, 0, fmt.Errorf(
		"GitRepository %s requires signatures, and %w; sign it with a key of Secret %s, or choose another revision", t.source, wrong, t.policy.SecretRef.Name))
}

// judge returns an error that names a missing or invalid signature.
func (t *trust) judge(is proof, signed git.Signed) error {
	if t.policy.VerifyTag() {
		if is.id == "" {
			return fmt.Errorf("%s is not an annotated tag of commit %s, which mode %s requires", is.tag, is.commit, t.policy.GetMode())
		}
		if _, err := t.keys.VerifyTag(signed.Tag, is.tag, is.commit); err != nil {
			return fmt.Errorf("tag %s is not verified: %w", is.tag, err)
		}
	}
	if t.policy.VerifyHEAD() {
		if _, err := t.keys.VerifyCommit(signed.Commit); err != nil {
			return fmt.Errorf("commit %s is not verified: %w", is.commit, err)
		}
	}
	return nil
}

// refusesWrites returns an error if the repository is read only. Otherwise, anyone with permission to push could have unsigned content
// published with a commit of Sluice.
func (m *mirror) refusesWrites() error {
	if m.trust == nil {
		return nil
	}
	return failure.Wait(packagesv1.VerificationUnsupportedReason, 0, fmt.Errorf(
		"repository %s is read only, because GitRepository %s has spec.verify; use a GitRepository without spec.verify", m.key.Name, m.trust.source))
}
