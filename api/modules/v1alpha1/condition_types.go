package v1alpha1

// Condition types that are special to modules. Beside them, ModuleTemplate, Module and ModuleInstallation carry the
// common types Ready, Reconciling and Stalled. Those of negative polarity are present only while True.

// Condition types of a ModuleInstallation.
const (
	// ResolvedCondition says whether the spec leads to exactly one release. While it is False, what is installed is kept
	// as published all the same; a first installation is Stalled.
	ResolvedCondition = "Resolved"

	// UpToDateCondition says whether the release that the spec leads to is the one that is installed. While it is False,
	// its reason says what the release waits for, and status.pending says more.
	UpToDateCondition = "UpToDate"

	// AppliedCondition says whether every object is as the release and the config have it.
	AppliedCondition = "Applied"

	// HealthyCondition says whether the objects of the current release work.
	HealthyCondition = "Healthy"

	// DeprecatedCondition is True while the current release is deprecated or withdrawn; its message is that of the
	// release. Negative polarity, without influence on Ready.
	DeprecatedCondition = "Deprecated"

	// ContestedCondition is True while somebody else changes objects back again and again. They are healed less and
	// less often meanwhile. Negative polarity, without influence on Ready.
	ContestedCondition = "Contested"

	// DeletionBlockedCondition is True while the installation is to be deleted, and users' data keeps it from being.
	// Negative polarity; status.deletion says more.
	DeletionBlockedCondition = "DeletionBlocked"

	// InventoryLostCondition is True from when the Inventory is found to be gone until a release is installed in full
	// again. What an older release had left is not known any more. Negative polarity.
	InventoryLostCondition = "InventoryLost"
)

// Condition types of a ModuleTemplate.
const (
	// OfferedCondition says whether installations can find the release. Its reason says what limits that: another
	// template, the Module, or the lack of a version.
	OfferedCondition = "Offered"

	// ArtifactVerifiedCondition says whether the artifact is there, and is the one that this version was first seen
	// with. Present once that is known: for an artifact that is fetched for the release alone, only while the release is
	// wanted or could not be had.
	ArtifactVerifiedCondition = "ArtifactVerified"

	// ConflictCondition is True while another template says the same in another way: the version with other bytes, or
	// the channel. Negative polarity.
	ConflictCondition = "Conflict"

	// InUseCondition is True while an installation needs the release. It has no influence on Ready.
	InUseCondition = "InUse"
)

// Condition types of a Module.
const (
	// ChannelsValidCondition says whether every channel leads to a release that can be installed.
	ChannelsValidCondition = "ChannelsValid"
)

// Reasons why the spec itself leads nowhere. Stalled; only an edit of it helps.
const (
	// InvalidRequestReason: a field of module or upgrade has a value that it cannot have; the message says which.
	InvalidRequestReason = "InvalidRequest"

	// AmbiguousSelectionReason: more than one field selects a release; the message says which. Keep one.
	AmbiguousSelectionReason = "AmbiguousSelection"

	// InvalidVersionReason: a version is no strict semantic version. Write it as in 1.2.3, without a 'v'.
	InvalidVersionReason = "InvalidVersion"

	// InvalidRangeReason: module.range cannot be read, or would be read in two ways. The message says how to write it.
	InvalidRangeReason = "InvalidRange"

	// ModuleMismatchReason: the spec selects another module than is installed, or a template of another module than it
	// names. Another module is another installation: take the edit back, or delete this one first.
	ModuleMismatchReason = "ModuleMismatch"
)

// Reasons why no release could be chosen. The installation keeps what it has, and looks again as soon as something
// changes in the catalogue.
const (
	// ModuleNotFoundReason: no catalogue that the installation may look into has the module. Correct module.name or
	// module.catalog, or publish a release.
	ModuleNotFoundReason = "ModuleNotFound"

	// TemplateNotFoundReason: there is no ModuleTemplate of the name. Correct module.templateRef or module.catalog.
	TemplateNotFoundReason = "TemplateNotFound"

	// ModuleUnknownReason: the template has neither moduleName nor the label in its place. Set moduleName there.
	ModuleUnknownReason = "ModuleUnknown"

	// ConsumerNotAllowedReason: the Module does not let this namespace install it. Ask its owner to match the namespace
	// with consumers.namespaceSelector.
	ConsumerNotAllowedReason = "ConsumerNotAllowed"

	// ChannelNotFoundReason: neither the Module nor any template has the channel. Correct module.channel, or
	// defaultChannel in the Module; status.channels of the Module lists those that exist.
	ChannelNotFoundReason = "ChannelNotFound"

	// ChannelTargetMissingReason: the Module's channel points at a version that no template has. Publish the release,
	// or correct the channel.
	ChannelTargetMissingReason = "ChannelTargetMissing"

	// ChannelSuspendedReason: the channel's owner has stopped it; its message says why. Wait, or select by version.
	ChannelSuspendedReason = "ChannelSuspended"

	// ChannelConflictReason: two templates claim the channel, so that it leads nowhere. Delete one of them, or list the
	// channel in a Module. Both templates carry it as well.
	ChannelConflictReason = "ChannelConflict"

	// VersionNotFoundReason: no template outside of channels has the version. Correct module.version, or publish the
	// release without a channel.
	VersionNotFoundReason = "VersionNotFound"

	// NoMatchingReleaseReason: no release is left after all rules; the message and status.resolution.trace say which
	// rule took the last one. Widen the range, or let prereleases in.
	NoMatchingReleaseReason = "NoMatchingRelease"

	// ReleaseNotReadyReason: the release is there, but cannot be installed; the message says why. See the template's
	// own conditions.
	ReleaseNotReadyReason = "ReleaseNotReady"

	// ReleaseWithdrawnReason: the release has been withdrawn, and is installed nowhere anew. Select another one; the
	// message says which its authors recommend.
	ReleaseWithdrawnReason = "ReleaseWithdrawn"
)

// Reasons why a ModuleTemplate is not ready, or only partly counts.
const (
	// VersionUnknownReason: the template has no version, and none could be found in its annotation, tag or artifact; or
	// what was found is no semantic version. The release can be chosen by channel or name only. Set version. On an
	// installation: nothing says whether what is selected is newer than what is installed. Set
	// upgrade.allowDowngradeTo to its version as well.
	VersionUnknownReason = "VersionUnknown"

	// ReleaseConflictReason: a version stands for two artifacts, in two templates, or in a template and in what is
	// installed. Publish one of them under a version of its own.
	ReleaseConflictReason = "Conflict"

	// AliasReason: other templates have the same version with the same artifact. They are one release; nothing to do.
	AliasReason = "Alias"

	// ChannelOverriddenReason: the Module lists the channel that the template claims, and so decides where it points.
	// Nothing to do; take the channel out of the Module to let the claim count.
	ChannelOverriddenReason = "ChannelOverridden"

	// SourceNotPinnedReason: the source object that the template refers to could move. Stalled; select by digest or
	// commit there.
	SourceNotPinnedReason = "SourceNotPinned"

	// SourceNotFoundReason: the source object that the template refers to does not exist, or its kind has no artifacts.
	// Create it, or correct artifact.sourceRef.
	SourceNotFoundReason = "SourceNotFound"

	// ArtifactChangedReason: the source has another artifact than this version was installed with. It is not used.
	// Publish it under a higher version.
	ArtifactChangedReason = "ArtifactChanged"

	// DefaultConfigNotServedReason: the release was installed, and the cluster does not serve the kind of its default
	// configuration, which is not created therefore. Reason of Offered. Correct spec.defaultConfig, or bring its kind along.
	DefaultConfigNotServedReason = "DefaultConfigNotServed"

	// InstalledReason: an installation runs the release, has begun to, is about to, or may go back to it. Reason of InUse.
	InstalledReason = "Installed"
)

// Reasons why a release that was chosen is not installed yet. What is installed is kept as published.
const (
	// DowngradeBlockedReason: the release is older than the one that is installed. Set upgrade.allowDowngradeTo to
	// exactly its version, or select a newer one.
	DowngradeBlockedReason = "DowngradeBlocked"

	// UpgradeBlockedReason: the step to the release is larger than upgrade.maxStep allows. Raise it, or select a
	// release between the two.
	UpgradeBlockedReason = "UpgradeBlocked"

	// OneWayChannelReason: what is installed came from a channel that is one way, and the spec leads elsewhere. Go back
	// to the channel, or set upgrade.allowDowngradeTo to the release's version.
	OneWayChannelReason = "OneWayChannel"

	// AwaitingApprovalReason: upgrades are manual, or an edit would remove objects where they are not automatic. Set
	// upgrade.approve to the digest of the plan in status.pending.
	AwaitingApprovalReason = "AwaitingApproval"

	// UpgradesNeverReason: upgrade.mode keeps the first release. Change it to take another one.
	UpgradesNeverReason = "UpgradesNever"

	// DependencyNotReadyReason: an object in dependsOn is missing or not ready; the message names it. Looked at again
	// as soon as it changes.
	DependencyNotReadyReason = "DependencyNotReady"

	// NotSelectedReason: the release is newer, and the spec selects another one. Only in status.availableUpgrades.
	NotSelectedReason = "NotSelected"

	// PausedReason: management is Paused. Set it back to Managed to apply, heal and prune again. Ready is False with it where
	// an object is gone, or is not as it was applied.
	PausedReason = "Paused"

	// SuspendedReason: the spec suspends all work. Ready keeps the status that it had, and is Unknown where work was going on.
	SuspendedReason = "Suspended"
)

// Reasons why work on the objects failed. Except where said, it is tried again after spec.retryInterval.
const (
	// ServiceAccountMissingReason: the spec names no ServiceAccount, and the operator's settings neither name one nor
	// allow to do without. Stalled; set serviceAccountName.
	ServiceAccountMissingReason = "ServiceAccountMissing"

	// ServiceAccountNotFoundReason: the ServiceAccount does not exist, and nothing is done in its name, whatever it may do. Create
	// it, or correct serviceAccountName.
	ServiceAccountNotFoundReason = "ServiceAccountNotFound"

	// ForbiddenReason: the ServiceAccount may not do what the release needs; the message says what. Grant it with a
	// role.
	ForbiddenReason = "Forbidden"

	// ArtifactNotReadyReason: the source of the release has no artifact yet. See the source's own conditions.
	ArtifactNotReadyReason = "ArtifactNotReady"

	// ArtifactUnavailableReason: the artifact cannot be had for now: the server of the source is away, refuses it, or does
	// not have it yet. What is installed stays. Tried again after a delay that grows to 30 s, and as soon as the source
	// tells of an artifact; if it lasts, check the source, and that its address can be reached.
	ArtifactUnavailableReason = "ArtifactUnavailable"

	// ArtifactFailedReason: the source could not get the artifact, or it is not what its digest says, is too large, or
	// cannot be unpacked. Check the source.
	ArtifactFailedReason = "ArtifactFailed"

	// BuildFailedReason: no objects could be made from the artifact and the config: a manifest cannot be read, a
	// variable has no value, a patch does not fit. Correct the config, or publish a release that is mended.
	BuildFailedReason = "BuildFailed"

	// EmptyRenderReason: the release has no object at all. Nothing is applied or removed; correct path, or publish a
	// release that is mended.
	EmptyRenderReason = "EmptyRender"

	// InventoryTooLargeReason: the release has more objects than one installation can hold. Stalled; split it.
	InventoryTooLargeReason = "InventoryTooLarge"

	// ApplyFailedReason: the API server did not take some of the objects; the message names them and says why. Those
	// that it took stay.
	ApplyFailedReason = "ApplyFailed"

	// ImmutableFieldReason: an object cannot be changed in place. Set force to have it deleted and created again.
	ImmutableFieldReason = "ImmutableField"

	// OwnershipConflictReason: an object belongs to another installation, or is managed by something else; the message
	// says by what. Take it out of one of them, or set adopt.
	OwnershipConflictReason = "OwnershipConflict"

	// PruneBlockedReason: more objects would be removed than prune.maxPercent allows, so none is. Check that the release
	// is whole; raise the bound if it is.
	PruneBlockedReason = "PruneBlocked"

	// PruneFailedReason: some objects that are no longer needed could not be removed. They stay in the inventory.
	PruneFailedReason = "PruneFailed"

	// HealthCheckFailedReason: an object has failed, or did not become healthy within spec.timeout; the message names
	// it. Seen again as soon as it changes.
	HealthCheckFailedReason = "HealthCheckFailed"

	// DriftContestedReason: somebody changes an object back again and again; the message names the other field manager.
	// Reason of Contested. Stop the other, or take the field out of the release with a patch.
	DriftContestedReason = "DriftContested"
)

// Reasons why an installation is not deleted yet.
const (
	// DeletionBlockedReason: there are objects of the module's managed resources, which are users' data. Delete these,
	// or set deletion.mode to Orphan; status.deletion names some.
	DeletionBlockedReason = "DeletionBlocked"

	// DeletionUnknownReason: it could not be found out whether there is users' data. Tried again; the message says why.
	DeletionUnknownReason = "DeletionUnknown"

	// DependentsReason: other installations have this one in dependsOn. Delete them, take it out there, or set deletion.mode
	// to Orphan. It does not wait for those that are being deleted, nor when its namespace is.
	DependentsReason = "Dependents"

	// DeletionFailedReason: some objects could not be removed, or let go of; the message names them. Tried again.
	DeletionFailedReason = "DeletionFailed"
)

// Reasons of an Inventory that somebody has deleted by force.
const (
	// InventoryLostReason: somebody has deleted the Inventory by force. All objects of the release are applied again, and
	// others that were left are not known any more. A deletion in mode Block is Stalled by it, as nothing says what to remove: remove the objects that
	// carry the label in the message, and set deletion.mode to Orphan.
	InventoryLostReason = "InventoryLost"
)

// Reasons of a Module, and of Deprecated.
const (
	// ChannelsBrokenReason: a channel leads to no release that can be installed; the message names it, and
	// status.channels says why. Reason of ChannelsValid.
	ChannelsBrokenReason = "ChannelsBroken"

	// ReleaseDeprecatedReason: the authors of the current release recommend another one, or its support has ended.
	// Reason of Deprecated.
	ReleaseDeprecatedReason = "ReleaseDeprecated"
)

// Reasons of events that report what was done.
const (
	// ReleaseChosenReason: the spec leads to another release than before.
	ReleaseChosenReason = "ReleaseChosen"

	// InstallSucceededReason: the first release was installed and is healthy.
	InstallSucceededReason = "InstallSucceeded"

	// UpgradeSucceededReason: another release, or another config, was installed and is healthy.
	UpgradeSucceededReason = "UpgradeSucceeded"

	// DriftHealedReason: an object that somebody else had changed or deleted is as published again.
	DriftHealedReason = "DriftHealed"

	// UnusedVariablesReason: spec.config.substitute has variables that no object of the release uses. Correct their names,
	// or drop them.
	UnusedVariablesReason = "UnusedVariables"

	// OwnershipTakenReason: fields that another manager had set were taken over; the message names it.
	OwnershipTakenReason = "OwnershipTaken"

	// HandedOverReason: an object that is no longer needed went to another installation, which claims it; the message names
	// both.
	HandedOverReason = "HandedOver"

	// PrunedReason: objects that are no longer needed were removed.
	PrunedReason = "Pruned"

	// UninstalledReason: the installation's objects were removed.
	UninstalledReason = "Uninstalled"

	// OrphanedReason: the installation let go of its objects, or of one that is not its to delete.
	OrphanedReason = "Orphaned"
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
