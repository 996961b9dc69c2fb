package cluster

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepAnnotation says, with the value disabled, that its object is not to be deleted.
const KeepAnnotation = "modules.sluice.dev/prune"

// SSAAnnotation says how its object is applied; with the value SSAIgnore, that it is not, and neither deleted.
const (
	SSAAnnotation = "modules.sluice.dev/ssa"
	SSAIgnore     = "Ignore"
)

// Ignored says that the object is to be left as it is.
func Ignored(object metav1.Object) bool { return object.GetAnnotations()[SSAAnnotation] == SSAIgnore }

// KeptBy is the annotation by which anybody keeps the object from being deleted, as name and value; "" without one.
// Flux's and Helm's mean the same as ours, and Flux takes its own for a label as well.
func KeptBy(object metav1.Object) string {
	for _, keep := range [...]struct{ name, value string }{
		{KeepAnnotation, "disabled"},
		{SSAAnnotation, SSAIgnore},
		{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
		{"helm.sh/resource-policy", "keep"},
	} {
		for _, metadata := range []map[string]string{object.GetAnnotations(), object.GetLabels()} {
			if strings.EqualFold(strings.TrimSpace(metadata[keep.name]), keep.value) {
				return keep.name + ": " + keep.value
			}
		}
	}
	return ""
}
