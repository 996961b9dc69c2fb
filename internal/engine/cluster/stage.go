package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// The stages of an apply, in their order. Pruning goes the other way.
const (
	// StageDefinitions is what other objects cannot exist without: CRDs, Namespaces, classes.
	StageDefinitions = iota
	// StageSupport is what workloads find when they start: accounts and rights, configuration, storage, Services (their
	// addresses are in a container's environment only if they come first), limits and network policies.
	StageSupport
	// StageWorkloads is every other kind that Kubernetes brings along.
	StageWorkloads
	// StageCustom is every kind that a CRD or an aggregated API brings, often one whose controller and webhooks have just
	// been applied.
	StageCustom
	// StageAdmission is what stands in the way of every other request until its server is up: webhooks, admission
	// policies and APIServices.
	StageAdmission
)

// Stage is when objects of the kind are applied, from StageDefinitions to StageAdmission. It does not depend on the
// version.
func Stage(gvk schema.GroupVersionKind) int {
	switch kind := gvk.GroupKind(); kind.Group {
	case "apiextensions.k8s.io":
		return StageDefinitions
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return StageAdmission
	case "rbac.authorization.k8s.io":
		return StageSupport
	default:
		if stage, listed := stages()[kind]; listed {
			return stage
		}
	}
	if scheme.Scheme.IsGroupRegistered(gvk.Group) {
		return StageWorkloads
	}
	return StageCustom
}

// stages are the kinds that are not applied with the rest of their group.
func stages() map[schema.GroupKind]int {
	return map[schema.GroupKind]int{
		{Kind: "Namespace"}: StageDefinitions,
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:      StageDefinitions,
		{Group: "storage.k8s.io", Kind: "StorageClass"}:          StageDefinitions,
		{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: StageDefinitions,
		{Group: "node.k8s.io", Kind: "RuntimeClass"}:             StageDefinitions,
		{Group: "networking.k8s.io", Kind: "IngressClass"}:       StageDefinitions,
		{Group: "resource.k8s.io", Kind: "DeviceClass"}:          StageDefinitions,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:      StageSupport,
		{Kind: "ServiceAccount"}:                                 StageSupport,
		{Kind: "ConfigMap"}:                                      StageSupport,
		{Kind: "Secret"}:                                         StageSupport,
		{Kind: "ResourceQuota"}:                                  StageSupport,
		{Kind: "LimitRange"}:                                     StageSupport,
		{Kind: "PersistentVolume"}:                               StageSupport,
		{Kind: "PersistentVolumeClaim"}:                          StageSupport,
		{Kind: "Service"}:                                        StageSupport,
	}
}
