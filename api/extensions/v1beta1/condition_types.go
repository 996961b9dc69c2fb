package v1beta1

// Condition types.
const (
	// ReadyCondition: all artifacts are what the spec asks for.
	ReadyCondition = "Ready"
	// ReconcilingCondition: work goes on, or a failure is retried. Absent else.
	ReconcilingCondition = "Reconciling"
	// StalledCondition: nothing but an edit helps. Absent else.
	StalledCondition = "Stalled"
)

// Reasons of Ready, and of Reconciling and Stalled beside it.
const (
	// SucceededReason: everything is made.
	SucceededReason = "Succeeded"
	// ProgressingReason: something is being made.
	ProgressingReason = "Progressing"
	// ProgressingWithRetryReason: the last attempt failed, and another one follows.
	ProgressingWithRetryReason = "ProgressingWithRetry"
	// FailedReason: an error that belongs to no step. It is retried.
	FailedReason = "Failed"
	// SourceFetchFailedReason: a source is not there, has no artifact yet, or its artifact cannot be read or downloaded. The
	// generator waits for it, or tries again.
	SourceFetchFailedReason = "SourceFetchFailed"
	// BuildFailedReason: a copy operation cannot be done with what the sources have, or the result exceeds a limit. It is
	// retried; what else the generator makes is made all the same.
	BuildFailedReason = "BuildFailed"
	// ReconciliationFailedReason: an artifact could not be stored, or its ExternalArtifact not be written. It is retried.
	ReconciliationFailedReason = "ReconciliationFailed"
	// ValidationFailedReason: the spec contradicts itself, or a folder that 'pathPattern' matches gives no name or label.
	// Stalled; edit the generator, or rename the folder.
	ValidationFailedReason = "ValidationFailed"
	// AccessDeniedReason: a source is in another namespace, and '--no-cross-namespace-refs' forbids that. Stalled.
	AccessDeniedReason = "AccessDenied"
	// ConflictReason: there is an ExternalArtifact of that name which the generator has not made. It is left alone. Stalled;
	// delete it, or choose another name. What else the generator makes is made all the same.
	ConflictReason = "Conflict"
)
