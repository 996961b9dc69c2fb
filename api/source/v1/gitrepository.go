package v1

import (
	"cmp"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *GitRepository) UnmarshalJSON(data []byte) error {
	type plain GitRepository
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, GitRepositoryStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *GitRepository) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *GitRepository) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *GitRepository) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the interval at which upstream is asked.
func (in *GitRepository) GetRequeueAfter() time.Duration { return in.Spec.Interval.Duration }

// GetTimeout returns the bound on the upstream work of one attempt: DefaultGitTimeout when none is set.
func (in *GitRepositorySpec) GetTimeout() time.Duration {
	if in.Timeout == nil {
		return DefaultGitTimeout
	}
	return in.Timeout.Duration
}

// GetToPath returns where the include is copied to: a folder named like the included repository when none is set.
func (in *GitRepositoryInclude) GetToPath() string {
	return cmp.Or(in.ToPath, in.GitRepositoryRef.Name)
}

// GetMode returns which objects have to be signed: HEAD when nothing is set, and for the older spelling.
func (in *GitRepositoryVerification) GetMode() GitVerificationMode {
	if in.Mode == ModeGitHEADLegacy {
		return ModeGitHEAD
	}
	return cmp.Or(in.Mode, ModeGitHEAD)
}

// VerifyTag tells whether the annotated tag has to be signed.
func (in *GitRepositoryVerification) VerifyTag() bool { return in.GetMode() != ModeGitHEAD }

// VerifyHEAD tells whether the commit has to be signed.
func (in *GitRepositoryVerification) VerifyHEAD() bool { return in.GetMode() != ModeGitTag }
