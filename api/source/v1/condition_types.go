package v1

// Condition types that are special to sources. Beside them, every kind carries the common types Ready, Reconciling
// and Stalled. A type is present only while it says something: those of negative polarity only while True.
const (
	// ArtifactInStorageCondition is True while the artifact that status names is stored and served.
	// On success Ready takes over its reason, Succeeded, and its message:
	// "stored artifact for revision 'main@sha1:…'".
	ArtifactInStorageCondition = "ArtifactInStorage"

	// ArtifactOutdatedCondition is True from when a new revision was seen until its artifact is stored. The last
	// artifact stays served meanwhile. Negative polarity; its reasons are NewRevisionReason and IncludeChangeReason.
	ArtifactOutdatedCondition = "ArtifactOutdated"

	// SourceVerifiedCondition says whether the revision carries a valid signature. Present only while spec.verify
	// is set; when it is False, so is Ready, and nothing newer than the last artifact is served.
	SourceVerifiedCondition = "SourceVerified"

	// FetchFailedCondition is True while upstream could not be asked or fetched from. Negative polarity.
	FetchFailedCondition = "FetchFailed"

	// IncludeUnavailableCondition is True while an artifact that a GitRepository includes is not there. Negative
	// polarity; its reasons are NotFoundReason and NoArtifactReason, and it heals when the included object has an artifact.
	IncludeUnavailableCondition = "IncludeUnavailable"

	// BuildFailedCondition is True while a chart cannot be made a package. Negative polarity; only a HelmChart has it.
	BuildFailedCondition = "BuildFailed"

	// StorageOperationFailedCondition is True while the artifact could not be made or stored. Negative polarity.
	StorageOperationFailedCondition = "StorageOperationFailed"
)

// Reasons of ArtifactOutdated and Reconciling.
const (
	// NewRevisionReason: upstream has another revision than the artifact, or the same revision is to be built in
	// another way. Nothing to do.
	NewRevisionReason = "NewRevision"

	// NewChartReason: the source has another version of the chart than the artifact. Nothing to do.
	NewChartReason = "NewChart"

	// IncludeChangeReason: an artifact that a GitRepository includes is another one than was copied. Nothing to do.
	IncludeChangeReason = "IncludeChange"
)

// Reasons of FetchFailed.
const (
	// AuthenticationFailedReason: the credentials are missing, incomplete or malformed. Tried again; mend the Secret or
	// ServiceAccount that the message names.
	AuthenticationFailedReason = "AuthenticationFailed"

	// URLInvalidReason: spec.url cannot be parsed or used. Stalled; write it as http(s)://host/path or
	// ssh://user@host/path for a GitRepository, and as oci://host/path, without tag or digest, for an OCIRepository.
	URLInvalidReason = "URLInvalid"

	// GitOperationFailedReason: the Git server could not be reached or refuses the credentials, its host key is not
	// trusted, the reference does not exist, the commit is not on the branch, or the fetch broke off. Tried again with
	// growing delays; check spec.ref and the Secret, and that the server is reachable from the cluster.
	GitOperationFailedReason = "GitOperationFailed"

	// EmptyGitRepositoryReason: the Git repository has no commit. Tried again; push one.
	EmptyGitRepositoryReason = "EmptyGitRepository"

	// ReadOperationFailedReason: the tags of the repository could not be listed, or spec.ref.semver or semverFilter is
	// malformed or matches none of them. Tried again with growing delays, and Stalled where it is malformed; check
	// spec.ref, and that the registry is reachable from the cluster.
	ReadOperationFailedReason = "ReadOperationFailed"

	// OCIPullFailedReason: what spec.ref selects could not be looked up in the registry, or its manifest could not be
	// pulled: the registry could not be reached, refused the login, has no such tag or digest, or sent what its digest does
	// not say. Tried again with growing delays, and Stalled where spec.ref is malformed; check spec.url, spec.ref and
	// spec.secretRef, and that the registry is reachable from the cluster.
	OCIPullFailedReason = "OCIArtifactPullFailed"

	// OCILayerOperationFailedReason: the manifest has no layer that spec.layerSelector selects, or the layer could not be
	// pulled, is not what its digest says, or could not be unpacked: it is no archive, is damaged, holds something unsafe, or
	// exceeds a limit. Tried again with growing delays; correct spec.layerSelector, push a layer without what the message
	// names, or raise the limit.
	OCILayerOperationFailedReason = "OCIArtifactLayerOperationFailed"

	// BucketOperationFailedReason: the bucket could not be listed, or an object of it not be read: the storage could not be
	// reached, refused the keys, has no such bucket, or holds a key that is no path of a file. Tried again with growing
	// delays; check spec.endpoint, spec.bucketName, spec.region and the Secret, and that the storage is reachable from the
	// cluster.
	BucketOperationFailedReason = "BucketOperationFailed"

	// InvalidSTSConfigurationReason: spec.sts.provider does not go with spec.provider. Stalled; use 'ldap' with 'generic',
	// and 'aws' with 'aws'.
	InvalidSTSConfigurationReason = "InvalidSTSConfiguration"

	// IndexationFailedReason: what a Helm repository has in the place of its index is none, or breaks a rule for indexes. Tried
	// again with growing delays; check spec.url, and mend the index where the message says.
	IndexationFailedReason = "IndexationFailed"

	// SourceUnavailableReason: the source that spec.sourceRef names does not exist, or its spec cannot be read. Looked at again as
	// soon as it appears; create it, or correct spec.sourceRef.
	SourceUnavailableReason = "SourceUnavailable"

	// NoSourceArtifactReason: the source that spec.sourceRef names has no artifact. Looked at again as soon as it has one; see
	// what its own conditions say.
	NoSourceArtifactReason = "NoSourceArtifact"

	// InvalidChartReferenceReason: the source has no such chart, none of its versions is in the range of spec.version, or what
	// lies at the path is no chart. Stalled until the source is another one; correct spec.chart or spec.version, or mend the chart.
	InvalidChartReferenceReason = "InvalidChartReference"

	// ChartPullErrorReason: the package could not be pulled, is larger than allowed, is no chart, or is not the one that its
	// repository promises. Tried again with growing delays; see what the message says of the server or the package.
	ChartPullErrorReason = "ChartPullError"

	// InvalidProviderConfigurationReason: spec.provider does not go with the Secret or the URL. Make
	// spec.provider and the keys of the Secret agree.
	InvalidProviderConfigurationReason = "InvalidProviderConfiguration"

	// FeatureGateDisabledReason: the spec uses something this controller does not offer, or is not allowed to.
	// Stalled; take the field that the message names out of the spec, or enable the feature.
	FeatureGateDisabledReason = "FeatureGateDisabled"
)

// Reasons of BuildFailed, which only a HelmChart has.
const (
	// MetadataPatchErrorReason: the chart's version is no semantic version, so that nothing can be added to it. Stalled; correct
	// the version in Chart.yaml.
	MetadataPatchErrorReason = "MetadataPatchError"

	// ValuesFilesErrorReason: a file of spec.valuesFiles is missing, or is no YAML. Stalled until the source is another one;
	// correct the list, mend the file, or set spec.ignoreMissingValuesFiles.
	ValuesFilesErrorReason = "ValuesFilesError"

	// DependencyBuildErrorReason: a dependency of the chart is not to be had. Tried again with growing delays; check its entry in
	// Chart.yaml and Chart.lock, and the HelmRepository for its repository.
	DependencyBuildErrorReason = "DependencyBuildError"

	// ChartPackageErrorReason: the chart cannot be packaged: a file of it is too large, or no regular file. Tried again with
	// growing delays; mend the chart, or leave the file out in .helmignore.
	ChartPackageErrorReason = "ChartPackageError"

	// ChartVerificationErrorReason: spec.verify asks for what the kind of repository does not have. Tried again with growing
	// delays; remove it, or take the chart from a registry.
	ChartVerificationErrorReason = "ChartVerificationError"
)

// Reasons of Ready and ArtifactInStorage of a HelmChart, and of the events about its artifact.
const (
	// ChartPullSucceededReason: the package is stored as its repository has it. Nothing to do.
	ChartPullSucceededReason = "ChartPullSucceeded"

	// ChartPackageSucceededReason: the package was made, and is stored. Nothing to do.
	ChartPackageSucceededReason = "ChartPackageSucceeded"
)

// Reasons of IncludeUnavailable, which only a GitRepository has.
const (
	// NotFoundReason: the GitRepository that an include names does not exist in the namespace. Checked again after
	// a while, and as soon as it appears; create it, or correct spec.include.
	NotFoundReason = "NotFound"

	// NoArtifactReason: the included GitRepository has no artifact yet, or includes this one. Checked again after a
	// while, and as soon as it has one; see that object's own conditions, or take an include out of the cycle.
	NoArtifactReason = "NoArtifact"
)

// Reasons of SourceVerified. While it is True, its reason is Succeeded.
const (
	// VerificationErrorReason: the signature could not be checked; say, the Secret with the keys is missing. For an
	// OCIRepository also: no signature is there, or none by a signer that is trusted. Tried again; mend the Secrets
	// that spec.verify names, or sign the artifact.
	VerificationErrorReason = "VerificationError"

	// InvalidVerificationModeReason: spec.verify.mode wants a signed tag, but spec.ref selects none. Stalled;
	// select a tag, or verify HEAD.
	InvalidVerificationModeReason = "InvalidVerificationMode"

	// InvalidGitObjectReason: the Git object to verify carries no signature, or is a tag without a tag object. Tried
	// again; sign the commit or the tag.
	InvalidGitObjectReason = "InvalidGitObject"

	// InvalidTagSignatureReason: no trusted key made the tag's signature. Tried again; add the signer's key to the
	// Secret if the signer is to be trusted.
	InvalidTagSignatureReason = "InvalidTagSignature"

	// InvalidCommitSignatureReason: no trusted key made the commit's signature. Tried again; add the signer's key
	// to the Secret if the signer is to be trusted.
	InvalidCommitSignatureReason = "InvalidCommitSignature"
)

// Reasons of StorageOperationFailed. Except where said, they are tried again with growing delays.
const (
	// DirectoryCreationFailedReason: a folder could not be made. Check space and permissions of the storage.
	DirectoryCreationFailedReason = "DirectoryCreationFailed"

	// StatOperationFailedReason: a file or folder could not be looked at. Check the storage.
	StatOperationFailedReason = "StatOperationFailed"

	// InvalidPathReason: a path that the artifact would be made from is missing or is no folder. Check the paths
	// in spec.include and spec.sparseCheckout.
	InvalidPathReason = "InvalidPath"

	// ArchiveOperationFailedReason: the artifact could not be written, or grew beyond a limit. The message says
	// which; make room, raise the limit, or exclude more with spec.ignore.
	ArchiveOperationFailedReason = "ArchiveOperationFailed"

	// IllegalPathReason: the source's tree or an include holds a path that would leave the artifact. Remove it upstream,
	// or correct spec.include.
	IllegalPathReason = "IllegalPath"

	// CopyFailureReason: an include could not be copied; say, its toPath is a folder that is there already.
	// Correct spec.include.
	CopyFailureReason = "CopyFailure"
)

// Reasons that only errors, events and the summary in Ready carry.
const (
	// SourceIgnoreErrorReason: the ignore rules of the source could not be read. Tried again; mend its
	// .sourceignore files or spec.ignore.
	SourceIgnoreErrorReason = "SourceIgnoreError"

	// PatchOperationFailedReason: the object could not be written to the API server. Tried again; nothing to do,
	// unless it lasts: check the controller's permissions.
	PatchOperationFailedReason = "PatchOperationFailed"

	// ArtifactVerificationFailedReason: the stored artifact no longer matches its digest and was dropped. It is
	// built again; check the storage if this repeats.
	ArtifactVerificationFailedReason = "ArtifactVerificationFailed"
)

// Reasons of events that report success.
const (
	// NewArtifactReason: an artifact was stored.
	NewArtifactReason = "NewArtifact"

	// LinksSkippedReason: an artifact was made without the links of its OCI layer. Push files in their place if they are
	// missed.
	LinksSkippedReason = "LinksSkipped"

	// EmptySelectionReason: no object of the bucket is selected any more, and the artifact is empty. What consumers make of
	// it may be gone soon; put the objects back, or correct spec.prefix and the ignore rules.
	EmptySelectionReason = "EmptySelection"

	// StaleChartLockReason: a chart's Chart.lock was made for other dependencies than the chart has, and decided all the same. Run
	// helm dependency update, and commit what it writes.
	StaleChartLockReason = "StaleChartLock"

	// GitOperationSucceededReason: the Git server was asked and has nothing new.
	GitOperationSucceededReason = "GitOperationSucceeded"

	// ArtifactUpToDateReason: the artifact is what the spec selects already.
	ArtifactUpToDateReason = "ArtifactUpToDate"

	// GarbageCollectionSucceededReason: artifacts that nobody needs any more were removed.
	GarbageCollectionSucceededReason = "GarbageCollectionSucceeded"
)

// Reasons that every kind shares.
const (
	// SucceededReason: the last attempt did all it had to.
	SucceededReason = "Succeeded"

	// FailedReason: something failed that has no reason of its own. The message says what; tried again.
	FailedReason = "Failed"

	// ProgressingReason: work is going on.
	ProgressingReason = "Progressing"

	// ProgressingWithRetryReason: the last attempt failed and another one follows.
	ProgressingWithRetryReason = "ProgressingWithRetry"
)
