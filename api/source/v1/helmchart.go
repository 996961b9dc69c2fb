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
func (in *HelmChart) UnmarshalJSON(data []byte) error {
	type plain HelmChart
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, HelmChartStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *HelmChart) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *HelmChart) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *HelmChart) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the interval at which the source is looked at.
func (in *HelmChart) GetRequeueAfter() time.Duration { return in.Spec.Interval.Duration }

// GetVersion returns the version or range to take: DefaultChartVersion when none is set.
func (in *HelmChartSpec) GetVersion() string {
	return cmp.Or(in.Version, DefaultChartVersion)
}

// GetReconcileStrategy returns what makes a new package: ReconcileStrategyChartVersion when nothing is set.
func (in *HelmChartSpec) GetReconcileStrategy() string {
	return cmp.Or(in.ReconcileStrategy, ReconcileStrategyChartVersion)
}

// GetValuesFiles returns the files that are merged into the package's default values. A list of nothing but the
// chart's own values counts as none, as in Flux.
func (in *HelmChartSpec) GetValuesFiles() []string {
	if len(in.ValuesFiles) == 1 && in.ValuesFiles[0] == "values.yaml" {
		return nil
	}
	return in.ValuesFiles
}
