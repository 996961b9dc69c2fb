package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "source.toolkit.fluxcd.io", Version: "v1"}

	// SchemeBuilder collects the functions that make the kinds known to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes the kinds of this package known to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion,
		&GitRepository{}, &GitRepositoryList{},
		&OCIRepository{}, &OCIRepositoryList{},
		&Bucket{}, &BucketList{},
		&ExternalArtifact{}, &ExternalArtifactList{},
		&HelmRepository{}, &HelmRepositoryList{},
		&HelmChart{}, &HelmChartList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
