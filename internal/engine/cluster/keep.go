package cluster

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepAnnotation says, with the value disabled, that its object is not to be deleted.
const KeepAnnotation = "modules.sluice.dev/prune"

// KeptBy is the annotation by which anybody keeps the object from being deleted, as name and value; "" without one.
// Flux's and Helm's mean the same as ours, and Flux takes its own for a label as well.
func KeptBy(object metav1.Object) string {
	for _, keep := range [...]struct{ name, value string }{
		{KeepAnnotation, "disabled"},
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
