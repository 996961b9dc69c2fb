package v1alpha1

const (
	// RepositoryFinalizer keeps a Repository until the objects of its revisions are gone.
	RepositoryFinalizer = "packages.sluice.dev/repository"

	// VariantFinalizer keeps a PackageVariant until its package is proposed for deletion or let go of.
	VariantFinalizer = "packages.sluice.dev/variant"

	// RevisionFinalizer keeps a PackageRevision until what it stands for is gone from Git.
	RevisionFinalizer = "packages.sluice.dev/revision"

	// TargetAnnotation says on a PackageVariant for which of its set's targets it is.
	TargetAnnotation = "packages.sluice.dev/target"

	// AllowDeletionAnnotation says on a PackageVariantSet how many of its variants may go, whatever its guard says.
	AllowDeletionAnnotation = "packages.sluice.dev/allow-deletion"

	// ReservedPrefix begins the annotations that say on a Kptfile where its package comes from. Nobody else may set them.
	ReservedPrefix = "packages.sluice.dev/"
)
