package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/engine/cluster"
)

// ManagedBy says in words who manages an object that no installation has; "" when nobody does. It goes by the marks that
// the tools leave for that: a controller's reference, and the labels and annotations of Helm, Flux and Argo CD.
func ManagedBy(live *metav1.PartialObjectMetadata) string {
	if owner := metav1.GetControllerOf(live); owner != nil {
		return fmt.Sprintf("the %s %s, which owns it", owner.Kind, owner.Name)
	}
	label, annotation := live.Labels, live.Annotations
	switch {
	case annotation["meta.helm.sh/release-name"] != "", label["app.kubernetes.io/managed-by"] == "Helm":
		return named("the Helm release", annotation["meta.helm.sh/release-namespace"], cmp.Or(annotation["meta.helm.sh/release-name"], label["app.kubernetes.io/instance"]))
	case label["kustomize.toolkit.fluxcd.io/name"] != "":
		return named("Flux's Kustomization", label["kustomize.toolkit.fluxcd.io/namespace"], label["kustomize.toolkit.fluxcd.io/name"])
	case label["helm.toolkit.fluxcd.io/name"] != "":
		return named("Flux's HelmRelease", label["helm.toolkit.fluxcd.io/namespace"], label["helm.toolkit.fluxcd.io/name"])
	case annotation["argocd.argoproj.io/tracking-id"] != "":
		application, _, _ := strings.Cut(annotation["argocd.argoproj.io/tracking-id"], ":")
		return named("Argo CD's Application", "", application)
	case label["app.kubernetes.io/instance"] != "" && hasManager(live, "argocd"):
		return named("Argo CD's Application", "", label["app.kubernetes.io/instance"])
	case hasManager(live, ManagerPrefix):
		return "another installation, whose label somebody has taken off"
	}
	return ""
}

func named(what, namespace, name string) string {
	return strings.TrimSpace(what + " " + strings.TrimPrefix(namespace+"/"+name, "/"))
}

func hasManager(live *metav1.PartialObjectMetadata, prefix string) bool {
	return slices.ContainsFunc(live.ManagedFields, func(entry cluster.Entry) bool { return strings.HasPrefix(entry.Manager, prefix) })
}

// isMade says that an installation provably made the object, in whichever of its lives.
func isMade(live *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(live.ManagedFields, func(entry cluster.Entry) bool {
		return strings.HasPrefix(entry.Manager, ManagerPrefix) && cluster.MadeBy(live, entry.Manager)
	})
}

// isLegacy says that the fields are those of a tool that an installation takes an object over from for good: what that
// had set, and the release does not have, is to go.
func isLegacy(entry cluster.Entry) bool {
	switch entry.Operation {
	case metav1.ManagedFieldsOperationApply:
		return entry.Manager == "kubectl" || entry.Manager == "helm"
	case metav1.ManagedFieldsOperationUpdate:
		return slices.Contains([]string{"kubectl-client-side-apply", "kubectl-last-applied", "helm", "Helm"}, entry.Manager)
	}
	return false
}
