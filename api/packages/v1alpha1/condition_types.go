package v1alpha1

// Condition types that are special to packages. Beside them, Repository, PackageVariant and PackageRevision carry the
// common types Ready, Reconciling and Stalled. Those of negative polarity are present only while True.

// Condition types of a PackageVariant.
const (
	// UpdatePendingCondition is True while the package would be another, and cannot be made yet: a proposal is frozen, or
	// dryRun is set. Negative polarity, without influence on Ready; status.preview says more.
	UpdatePendingCondition = "UpdatePending"

	// ConflictedCondition is True while upstream and people's edits changed the same in different ways. Negative
	// polarity; Ready is False with it only where conflictPolicy is Fail. status.change says more.
	ConflictedCondition = "Conflicted"

	// GoesBackCondition is True while the followed upstream revision is older than the published one, or is not known to be newer.
	// Negative polarity, without influence on Ready. Sluice drafts the change, and a person must approve it under every policy.
	GoesBackCondition = "GoesBack"

	// InjectedCondition says whether every required injection point of the package is filled. Absent where the package
	// has no point.
	InjectedCondition = "Injected"

	// RenderedCondition says whether the package's functions have run.
	RenderedCondition = "Rendered"

	// ReviewedCondition says what came of the review of the open change, or of the one that was published last: True once its
	// request is merged, Unknown while it waits for people, False where it was closed, or cannot be asked for. Absent
	// where the spec asks for no review. Without influence on Ready, but for what only people can mend.
	ReviewedCondition = "Reviewed"
)

// HistoryBlockedCondition is True on a Repository while what spec.history lets go of cannot be removed. Negative polarity, without
// influence on Ready: all else goes on.
const HistoryBlockedCondition = "HistoryBlocked"

// IncompleteCondition is True on a Repository while Sluice leaves out or cannot use a part of it; the message names the part. Negative
// polarity, without influence on Ready: all other work continues.
const IncompleteCondition = "Incomplete"

// DeletionGuardedCondition is True on a PackageVariantSet while variants without a target stay because of its guard.
// Negative polarity; Ready is False with it.
const DeletionGuardedCondition = "DeletionGuarded"

// RolledOutCondition says on a PackageVariantSet whether all of its variants are published as its newest revision wants them.
// Absent where the set has no rollout. Without influence on Ready, but for a rollout that has stopped.
const RolledOutCondition = "RolledOut"

// Condition types of a PackageRevision.
const (
	// GatesMetCondition says whether the package's readiness gates are open. Absent where it has none.
	GatesMetCondition = "GatesMet"

	// ArtifactInStorageCondition is True while the artifact that status names is stored and served.
	ArtifactInStorageCondition = "ArtifactInStorage"

	// ApprovedCondition is False after the approval of a removal has expired, until spec.lifecycle is set again. Else absent.
	ApprovedCondition = "Approved"
)

// Reasons why a Repository cannot be worked on.
const (
	// GitRepositoryNotFoundReason: there is no GitRepository of the name. Create it, or correct the name in a new
	// Repository.
	GitRepositoryNotFoundReason = "GitRepositoryNotFound"

	// SecretNotFoundReason: a Secret that is named does not exist, or lacks a key; the message says which. Mend it.
	SecretNotFoundReason = "SecretNotFound"

	// SigningKeyInvalidReason: commits cannot be signed with the key: it cannot be read, or its passphrase is wrong.
	// Mend the Secret.
	SigningKeyInvalidReason = "SigningKeyInvalid"

	// VerificationKeysInvalidReason: the keys of spec.verify of the GitRepository are invalid. Correct the Secret. Until then, Sluice
	// reads no package of the Repository.
	VerificationKeysInvalidReason = "VerificationKeysInvalid"

	// SyncFailedReason: the repository could not be read. What was last seen of it stays. Tried again with growing delays;
	// check the GitRepository, and that the server is reachable from the cluster.
	SyncFailedReason = "SyncFailed"

	// PushRejectedReason: the server refused what was pushed, such as with a hook or because a branch is protected; the
	// message has its words. Tried again with growing delays; allow it there.
	PushRejectedReason = "PushRejected"

	// PushFailedReason: nothing could be pushed: the server is away, or refuses the credentials, or others were faster
	// again and again. Tried again with growing delays.
	PushFailedReason = "PushFailed"
)

// Reasons why Sluice cannot use a part of a Repository.
const (
	// LimitExceededReason: the repository has more packages, or more branches and tags, than Sluice can hold in memory; the message has
	// the bound. The objects of packages beyond it stay and wait. Remove branches, tags or packages.
	LimitExceededReason = "LimitExceeded"

	// RefInTheWayReason: a branch or tag has the name of a folder that refs of packages need, such as drafts or drafts/app; the
	// message names the ref. Rename or remove it.
	RefInTheWayReason = "RefInTheWay"

	// BranchUnknownReason: the server did not answer whether the branch has the commits of new tags; the message names the tags. Sluice
	// does not use them, and asks again.
	BranchUnknownReason = "BranchUnknown"
)

// Reasons why the spec of a PackageVariant leads nowhere.
const (
	// InvalidSpecReason: a field has a value that it cannot have; the message says which. Stalled; only an edit helps.
	InvalidSpecReason = "InvalidSpec"

	// RepositoryNotFoundReason: there is no Repository of the name. Create it, or correct the name.
	RepositoryNotFoundReason = "RepositoryNotFound"

	// RepositoryNotReadyReason: the Repository was not read yet, or is suspended. See its own conditions.
	RepositoryNotReadyReason = "RepositoryNotReady"

	// UpstreamNotFoundReason: the repository has no such package, or none at that revision, tag or branch, or no version in
	// the range. Looked for again when the repository moves.
	UpstreamNotFoundReason = "UpstreamNotFound"

	// FilesOutsidePackageReason: the change also has files outside of the package's folder, which the message names. Sluice neither
	// proposes nor publishes the change, because the publication would omit these files. Remove them from the change.
	FilesOutsidePackageReason = "FilesOutsidePackage"

	// OtherBranchReason: the change belongs to another branch of the Git repository, or its history has the commit of another branch's
	// tag. Repositories of one URL show the same drafts. Propose and approve it in the Repository of its branch, or rebase the draft.
	OtherBranchReason = "OtherBranch"

	// CircularUpstreamReason: the package is made from itself through other variants, which the message names. Each publication would
	// cause the next one. The youngest variant of the circle waits. Choose another package in one of them.
	CircularUpstreamReason = "CircularUpstream"

	// VerificationFailedReason: the GitRepository of the upstream Repository has spec.verify, and the chosen commit or tag lacks the
	// required signature. Sign it, or choose another one. The published package stays.
	VerificationFailedReason = "VerificationFailed"

	// VerificationUnsupportedReason: the GitRepository of the Repository has spec.verify, so the Repository is read only. Sluice
	// verifies the packages that it reads from such a Repository, and writes nothing to it. Use a GitRepository without spec.verify.
	VerificationUnsupportedReason = "VerificationUnsupported"

	// NotOwnedReason: the package is there downstream, and is nobody's or another variant's; the message says whose. Set
	// adoptionPolicy to adoptExisting if no variant manages it, or choose another package. Also: a file would belong to two packages,
	// one in the folder of the other; the message names both.
	NotOwnedReason = "NotOwned"

	// InvalidPackageReason: the package cannot be read: its Kptfile or another file has errors, or it is too large. Mend it
	// in Git; the message names the file.
	InvalidPackageReason = "InvalidPackage"
)

// Reasons why a package cannot be made, or is not made in full.
const (
	// BindingMissingReason: no binding has the name of a binding point. Add one.
	BindingMissingReason = "BindingMissing"

	// BindingInvalidReason: a value is of another type than the point that it is bound to, too long, or not there. Mend the binding, or
	// what it reads.
	BindingInvalidReason = "BindingInvalid"

	// PathMissingReason: the object has nothing where the path of a binding leads. Mend the path, or the object.
	PathMissingReason = "PathMissing"

	// NoPointReason: the package has no binding point of a binding's name. Mend the name, or take the binding out.
	NoPointReason = "NoPoint"

	// AmbiguousInjectionReason: several objects fit an injection point; the message names some. Select one by its name.
	AmbiguousInjectionReason = "AmbiguousInjection"

	// InjectionMissingReason: no object fits a required injection point. The package is made all the same, and cannot be
	// published. Create the object, or add an injector.
	InjectionMissingReason = "InjectionMissing"

	// InjectionForbiddenReason: the ServiceAccount may not read an object, or a Secret would be injected that no injector
	// allows. Grant it with a role, or set allowSecrets.
	InjectionForbiddenReason = "InjectionForbidden"

	// ServiceAccountMissingReason: the spec names no ServiceAccount, and the operator's settings neither name one nor allow
	// to do without. Stalled; set serviceAccountName.
	ServiceAccountMissingReason = "ServiceAccountMissing"

	// ConflictReason: upstream and people's edits changed the same; status.change lists where. Nothing is written while
	// conflictPolicy is Fail. Mend the draft, or set another policy.
	ConflictReason = "Conflict"

	// UnknownFunctionReason: a pipeline has a function that does not exist here; the message names it, and those that do.
	// Stalled; take it out, or publish upstream without it.
	UnknownFunctionReason = "UnknownFunction"

	// FunctionUntrustedReason: a function of the package's own is allowed, and nobody has signed it whom operators trust for
	// it. Stalled; have it signed, and ask for a reconcile.
	FunctionUntrustedReason = "FunctionUntrusted"

	// RenderFailedReason: a function failed; the message names it, the object and the field. Mend the package or the
	// function's configuration.
	RenderFailedReason = "RenderFailed"
)

// Reasons why a change is not published, or is not changed.
const (
	// GatesNotMetReason: readiness gates of the package are not open; the message names them. Whoever they wait for sets
	// their conditions in the Kptfile.
	GatesNotMetReason = "GatesNotMet"

	// ApprovedCommitMismatchReason: the change is at another commit than approvedCommit. Look at it again, and approve the
	// commit in status.
	ApprovedCommitMismatchReason = "ApprovedCommitMismatch"

	// ConflictsNotApprovedReason: the change has conflicts between upstream and people's edits, and approvedConflicts is not their
	// digest; the message has the digest. Read the conflicts in the variant's status.change, then set approvedConflicts.
	ConflictsNotApprovedReason = "ConflictsNotApproved"

	// OutOfDateReason: another revision was published since the change was begun. Its variant brings it up to date; a draft
	// of somebody else has to be begun again.
	OutOfDateReason = "OutOfDate"

	// FrozenProposalReason: the package would be another by now, and its change is proposed, which keeps it from being
	// changed. Reason of UpdatePending. Publish it, or set it back to Draft.
	FrozenProposalReason = "FrozenProposal"

	// OlderUpstreamReason: the followed upstream revision is older than the published one: its tag has a lower version, or its commit
	// is in the history of the published commit. Reason of GoesBack. Approve the change, or correct upstream or the spec.
	OlderUpstreamReason = "OlderUpstream"

	// NotComparableReason: neither version nor history prove that the upstream revision is newer than the published one. Reason of
	// GoesBack. Approve the change, or correct upstream or the spec.
	NotComparableReason = "NotComparable"

	// DryRunReason: dryRun keeps the package from being changed. Reason of UpdatePending.
	DryRunReason = "DryRun"

	// ApprovalExpiredReason: the controller could not carry out an approved removal at once; the message has the cause. The
	// controller resets spec.lifecycle. Correct the cause, then approve again. Reason of Ready and Approved.
	ApprovalExpiredReason = "ApprovalExpired"

	// DraftKeptReason: a variant was deleted or moved, and its draft stays in Git because people have committed to it; the message
	// names the branch. Use or delete the branch. Reason of an event.
	DraftKeptReason = "DraftKept"

	// DeletionProposedReason: the deletion of the package is proposed. Set lifecycle to Deleted and approvedCommit to status.commit to
	// approve it, or set lifecycle back to Published.
	DeletionProposedReason = "DeletionProposed"

	// GoneReason: Git has the change or revision no more. The object is deleted.
	GoneReason = "Gone"

	// InvalidTransitionReason: the lifecycle that is asked for cannot follow the one that was observed. Ask for another.
	InvalidTransitionReason = "InvalidTransition"
)

// Reasons of Reviewed. Those that people have to mend are also reasons of Ready.
const (
	// ReviewPendingReason: the request is open, and waits for people; the message says where it is. Merge it to approve the
	// change, or close it to reject it.
	ReviewPendingReason = "ReviewPending"

	// ReviewMergedReason: the request was merged, and the change is published.
	ReviewMergedReason = "ReviewMerged"

	// ReviewClosedReason: the request was closed, which rejects the change as it is. Another one gets a request of its own;
	// open it again to have the same one reviewed.
	ReviewClosedReason = "ReviewClosed"

	// MergedOtherwiseReason: the request was merged, and the branch has something else than what was to be reviewed. That is
	// no approval: nothing is published. What is on the branch now is taken over into the next change.
	MergedOtherwiseReason = "MergedOtherwise"

	// ReviewDelayedReason: the forge does not answer at the moment, or wants fewer requests; the message has its words.
	// Tried again, not before the time that it asks for. Everything else goes on.
	ReviewDelayedReason = "ReviewDelayed"

	// ReviewFailedReason: the review cannot be asked for: the forge does not accept the credential, the provider or the
	// endpoint is another one's, or it refuses the request; the message has its words. Also a reason of Ready. The draft
	// stays, and can be approved by its PackageRevision.
	ReviewFailedReason = "ReviewFailed"
)

// Reasons of a PackageVariantSet.
const (
	// DeletionGuardedReason: more targets have gone since a person last accepted the targets than spec.deletionGuard allows, or the
	// record of earlier deletions is missing. All variants without a target stay. Correct the selectors or restore the targets; or
	// set the annotation 'packages.sluice.dev/allow-deletion' to status.deletionGuard.digest.
	DeletionGuardedReason = "DeletionGuarded"

	// TargetsFailedReason: some targets have no variant as they should; status.problems says which, and why. The others have.
	// Tried again with growing delays.
	TargetsFailedReason = "TargetsFailed"

	// TargetsForbiddenReason: the ServiceAccount may not list the objects that are selected. Grant it with a role.
	TargetsForbiddenReason = "TargetsForbidden"

	// RolloutStoppedReason: a variant fails with the newest revision; the message names it. No other takes the revision until it
	// is well. Mend it, or publish or edit something newer.
	RolloutStoppedReason = "RolloutStopped"

	// RolloutWaitsReason: a wave waits for something before it takes the newest revision; the message and status.rollout say
	// for what. Reason of RolledOut.
	RolloutWaitsReason = "RolloutWaits"

	// PreviewNotApprovedReason: a new revision waits until somebody approves its preview; the message has the digest. Look at
	// status.preview, and put the digest into the annotation 'packages.sluice.dev/approved-preview'. Reason of RolledOut.
	PreviewNotApprovedReason = "PreviewNotApproved"

	// PreviewApprovedReason: the preview of a revision was approved; the message has its digest.
	PreviewApprovedReason = "PreviewApproved"

	// TargetGoneReason: targets have gone, and their variants stay for the grace period; the message names some variants.
	TargetGoneReason = "TargetGone"

	// DeletionAcknowledgedReason: a person acknowledged the deletion of variants without a target; the message has the digest.
	DeletionAcknowledgedReason = "DeletionAcknowledged"

	// VariantsChangedReason: variants were made, changed or deleted.
	VariantsChangedReason = "VariantsChanged"

	// WaveBegunReason: the first variants of a wave take the newest revision. Reason of an event.
	WaveBegunReason = "WaveBegun"

	// WaveDoneReason: all variants of a wave are published with the newest revision. Reason of an event.
	WaveDoneReason = "WaveDone"

	// WaveFailedReason: a variant of a wave fails with the newest revision; the message names it. Reason of an event.
	WaveFailedReason = "WaveFailed"
)

// Reasons of events that report what was done.
const (
	// DraftWrittenReason: a draft was begun or changed; the message names the commit.
	DraftWrittenReason = "DraftWritten"

	// ConflictedReason: the open change has new conflicts between upstream and people's edits; the message has the digest of all.
	// Reason of an event.
	ConflictedReason = "Conflicted"

	// ProposedReason: a draft was proposed.
	ProposedReason = "Proposed"

	// RejectedReason: a proposal was set back.
	RejectedReason = "Rejected"

	// PublishedReason: a change was published; the message names the revision.
	PublishedReason = "Published"

	// HistoryPrunedReason: tags of old revisions were removed from Git; the message names them, and the log their commits.
	HistoryPrunedReason = "HistoryPruned"
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

	// SuspendedReason: the spec suspends all work. Ready keeps the status that it had, and is Unknown where work was going on.
	SuspendedReason = "Suspended"
)
