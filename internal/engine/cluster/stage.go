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
	switch gvk.Group {
	case "apiextensions.k8s.io":
		return StageDefinitions
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return StageAdmission
	case "rbac.authorization.k8s.io":
		return StageSupport
	}
	switch gvk.GroupKind().String() {
	case "Namespace", "PriorityClass.scheduling.k8s.io", "StorageClass.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io",
		"RuntimeClass.node.k8s.io", "IngressClass.networking.k8s.io", "DeviceClass.resource.k8s.io":
		return StageDefinitions
	case "ServiceAccount", "ConfigMap", "Secret", "ResourceQuota", "LimitRange", "PersistentVolume", "PersistentVolumeClaim", "Service",
		"NetworkPolicy.networking.k8s.io":
		return StageSupport
	}
	if scheme.Scheme.IsGroupRegistered(gvk.Group) {
		return StageWorkloads
	}
	return StageCustom
}
