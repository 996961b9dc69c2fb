package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "packages.sluice.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that make the kinds known to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes the kinds of this package known to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion,
		&Repository{}, &RepositoryList{},
		&PackageVariant{}, &PackageVariantList{},
		&PackageRevision{}, &PackageRevisionList{},
		&PackageVariantSet{}, &PackageVariantSetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
