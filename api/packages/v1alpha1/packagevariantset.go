package v1alpha1

import (
	"cmp"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *PackageVariantSet) UnmarshalJSON(data []byte) error {
	type plain PackageVariantSet
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, PackageVariantSetStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *PackageVariantSet) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *PackageVariantSet) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *PackageVariantSet) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the time between two rounds: DefaultSetInterval when none is set.
func (in *PackageVariantSet) GetRequeueAfter() time.Duration {
	return orDefault(in.Spec.Interval, DefaultSetInterval)
}

// GetTimeout returns the bound on one round: DefaultSetTimeout when none is set.
func (in *PackageVariantSetSpec) GetTimeout() time.Duration {
	return orDefault(in.Timeout, DefaultSetTimeout)
}

// GetGuardPercent returns how many of the variants have to stay, in percent: DefaultGuardPercent when nothing is set.
func (in *PackageVariantSetSpec) GetGuardPercent() int {
	if in.DeletionGuard == nil || in.DeletionGuard.MinPercent == nil {
		return DefaultGuardPercent
	}
	return int(*in.DeletionGuard.MinPercent)
}

// GetGracePeriod returns how long a variant stays after its target has gone. The default is DefaultGracePeriod.
func (in *PackageVariantSetSpec) GetGracePeriod() time.Duration {
	if in.DeletionGuard == nil {
		return DefaultGracePeriod
	}
	return orDefault(in.DeletionGuard.GracePeriod, DefaultGracePeriod)
}

// GetOnFailure returns what becomes of a rollout in which a variant fails: FailureStops when nothing is set.
func (in *Rollout) GetOnFailure() OnFailure { return cmp.Or(in.OnFailure, FailureStops) }

// InFlight returns how many of so many variants of the wave may be changed at once.
func (in *Wave) InFlight(variants int) int {
	if in.MaxInFlight == nil {
		return max(variants, 1)
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(in.MaxInFlight, variants, true)
	if err != nil {
		return 1 // The schema allows no other.
	}
	return max(most, 1)
}

// GetSoak returns how long the wave has to be done before the next one begins.
func (in *Wave) GetSoak() time.Duration { return orDefault(in.Soak, 0) }
