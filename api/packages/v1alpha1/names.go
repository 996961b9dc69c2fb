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

	// RevisionAnnotation says on a PackageVariant which revision of its set it is at: the name of a ControllerRevision.
	RevisionAnnotation = "packages.sluice.dev/revision"

	// JoinedAnnotation says on a PackageVariant at which revision of its set it was made.
	JoinedAnnotation = "packages.sluice.dev/joined"

	// BesideAnnotation marks a PackageVariant that its set created while other variants stayed without a target. It does not join the
	// guard's baseline as long as these stay.
	BesideAnnotation = "packages.sluice.dev/beside-unwanted"

	// SetLabel says on a ControllerRevision of which PackageVariantSet it is, by its UID.
	SetLabel = "packages.sluice.dev/set"

	// WavesAnnotation says on a ControllerRevision since when which waves are done with it, as an object in JSON.
	WavesAnnotation = "packages.sluice.dev/waves"

	// HeldAnnotation says on a ControllerRevision that it waits until its preview is approved.
	HeldAnnotation = "packages.sluice.dev/held"

	// ApprovedPreviewAnnotation says on a PackageVariantSet which preview is approved, by its digest; and on a ControllerRevision
	// with which it was.
	ApprovedPreviewAnnotation = "packages.sluice.dev/approved-preview"

	// TargetGoneAnnotation is on a PackageVariant without a target: the time at which its set noticed this, in RFC 3339.
	TargetGoneAnnotation = "packages.sluice.dev/target-gone-since"

	// AllowDeletionAnnotation on a PackageVariantSet acknowledges the deletion of the variants that its closed guard protects. Its value
	// is status.deletionGuard.digest, or at least the first 12 hexadecimal digits of the digest. It is valid once.
	AllowDeletionAnnotation = "packages.sluice.dev/allow-deletion"

	// ReservedPrefix begins the annotations that say on a Kptfile where its package comes from. Nobody else may set them.
	ReservedPrefix = "packages.sluice.dev/"
)
