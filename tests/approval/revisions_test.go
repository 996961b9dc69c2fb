package approval_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	seenDraft    = "status: {observedGeneration: 1, lifecycle: Draft, workspace: one, ref: refs/heads/drafts/web/one, commit: COMMIT1, tree: COMMIT2}"
	seenProposed = "status: {observedGeneration: 1, lifecycle: Proposed, workspace: one, ref: refs/heads/proposed/web/one, commit: COMMIT1, tree: COMMIT2}"
	seenNewest   = "status: {observedGeneration: 1, lifecycle: Published, revision: 1, workspace: one, ref: refs/tags/web/v1, commit: COMMIT1, tree: COMMIT2}"
	seenLeaving  = "status: {observedGeneration: 1, lifecycle: DeletionProposed, revision: 1, workspace: one, ref: refs/tags/web/v1, commit: COMMIT1, tree: COMMIT2}"

	isDraft    = draft + ", lifecycle: Draft}\n" + seenDraft
	isProposed = draft + ", lifecycle: Proposed}\n" + seenProposed
	isNewest   = draft + ", lifecycle: Published}\n" + seenNewest
	isLeaving  = draft + ", lifecycle: DeletionProposed}\n" + seenLeaving
	// isBehind was published while its spec asks for a draft: somebody else did it in Git.
	isBehind = draft + ", lifecycle: Draft}\n" + seenNewest
	// isAhead is to be published, and was not yet.
	isAhead = draft + ", lifecycle: Published, approvedCommit: COMMIT1}\n" + seenProposed

	digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

	finalized = "metadata: {name: web, finalizers: [packages.sluice.dev/revision, example.com/mine]}\n"
)

func TestRevisionsAreCreatedAsDrafts(t *testing.T) {
	t.Parallel()
	testAttempts(t, packagesv1.PackageRevisionKind, map[string]attempt{
		"Default":    {"nothing is asked for", "", nil, draft + "}", false},
		"Draft":      {"everyone may begin a draft", "", nil, draft + ", lifecycle: Draft}", false},
		"Named":      {"the name may be left to the API server", "", nil, "metadata: {generateName: web-, name: ''}\n" + draft + "}", false},
		"Proposed":   {"a draft is looked at before it is proposed", "", nil, draft + ", lifecycle: Proposed}", true},
		"Published":  {"nobody publishes by creating", "", nil, draft + ", lifecycle: Published}", true},
		"WithCommit": {"nor with a commit", "", nil, draft + ", lifecycle: Published, approvedCommit: COMMIT1}", true},
		"Deletion":   {"nor proposes a deletion", "", nil, draft + ", lifecycle: DeletionProposed}", true},
		"Removal":    {"nor removes anything", "", nil, draft + ", lifecycle: Deleted, approvedCommit: COMMIT1}", true},
		"Approved":   {"an approval is not brought along", "", nil, draft + ", approvedCommit: COMMIT1}", true},
		"Conflicts":  {"nor one of conflicts", "", nil, draft + ", approvedConflicts: '" + digest + "'}", true},
	})
}

func TestPublishingTakesTheRightToApprove(t *testing.T) {
	t.Parallel()
	const approved = `"lifecycle":"Published","approvedCommit":"` + commit1 + `"`
	testAttempts(t, packagesv1.PackageRevisionKind, map[string]attempt{
		"Propose":    {"a draft may be proposed", isDraft, patch(`{"spec":{"lifecycle":"Proposed"}}`), "", false},
		"Reject":     {"and taken back", isProposed, patch(`{"spec":{"lifecycle":"Draft"}}`), "", false},
		"Unset":      {"also by leaving it to the default", isProposed, patch(`{"spec":{"lifecycle":null}}`), "", false},
		"ProposeSSA": {"in every way", isDraft, apply(draft + ", lifecycle: Proposed}"), "", false},
		"ProposePut": {"in every way", isDraft, replace(map[string]any{"lifecycle": "Proposed"}), "", false},
		"Label":      {"labels are free", isNewest, patch(`{"metadata":{"labels":{"a":"b"}}}`), "", false},
		"Publish":    {"kubectl edit sends a merge patch", isProposed, patch(`{"spec":{` + approved + `}}`), "", true},
		"PublishJSON": {
			"kubectl patch may send operations", isProposed,
			operations(`[{"op":"add","path":"/spec/approvedCommit","value":"` + commit1 + `"},{"op":"replace","path":"/spec/lifecycle","value":"Published"}]`), "", true,
		},
		"PublishSSA":  {"kubectl apply --server-side", isProposed, apply(draft + ", lifecycle: Published, approvedCommit: COMMIT1}"), "", true},
		"PublishPut":  {"kubectl replace", isProposed, replace(map[string]any{"lifecycle": "Published", "approvedCommit": commit1}), "", true},
		"PublishBare": {"a draft is no shorter way", isDraft, patch(`{"spec":{` + approved + `}}`), "", true},
		"Commit":      {"an approval is not prepared", isProposed, patch(`{"spec":{"approvedCommit":"` + commit1 + `"}}`), "", true},
		"CommitOther": {"nor moved on to another commit", isAhead, patch(`{"spec":{"approvedCommit":"` + commit2 + `"}}`), "", true},
		"Conflicts":   {"nor are conflicts accepted", isProposed, patch(`{"spec":{"approvedConflicts":"` + digest + `"}}`), "", true},
		"CommitGone":  {"nor taken away", isAhead, patch(`{"spec":{"lifecycle":"Published","approvedCommit":null}}`), "", true},
		"Withdraw":    {"who may not approve takes no approval back", isAhead, patch(`{"spec":{"lifecycle":"Draft"}}`), "", true},
		"Unpublish":   {"what is published stays", isNewest, patch(`{"spec":{"lifecycle":"DeletionProposed"}}`), "", true},
		"Follow":      {"also where spec says otherwise", isBehind, patch(`{"spec":{"lifecycle":"Published"}}`), "", true},
		"Restore":     {"a deletion is turned down by approvers", isLeaving, patch(`{"spec":{"lifecycle":"Published"}}`), "", true},
		"RestoreSSA":  {"in every way", isLeaving, apply(draft + ", lifecycle: Published}"), "", true},
	})
}

func TestRemovingTakesTheRightToApprove(t *testing.T) {
	t.Parallel()
	const removed = `{"spec":{"lifecycle":"Deleted","approvedCommit":"` + commit1 + `"}}`
	testAttempts(t, packagesv1.PackageRevisionKind, map[string]attempt{
		"Deletion": {"an approval removes the package", isLeaving, patch(removed), "", true},
		"Draft":    {"and discards a draft, with people's commits", isDraft, patch(removed), "", true},
		"SSA":      {"in every way", isLeaving, apply(draft + ", lifecycle: Deleted, approvedCommit: COMMIT1}"), "", true},
		"Object":   {"deleting the object changes nothing in Git", isLeaving, remove, "", false},
		"Newest":   {"the same for a published revision", isNewest, remove, "", false},
		"All":      {"and for all at once", isDraft, removeAll, "", false},
		"Kept":     {"and for an object with a finalizer", finalized + isNewest, remove, "", false},
	})
}

func TestWhatWasObservedIsNotForged(t *testing.T) {
	t.Parallel()
	testAttempts(t, packagesv1.PackageRevisionKind, map[string]attempt{
		"Lifecycle":    {"a published revision would be dropped as a draft", isNewest, patchStatus(`{"status":{"lifecycle":"Draft"}}`), "", true},
		"LifecycleNil": {"or as one that was never looked at", isNewest, patchStatus(`{"status":{"lifecycle":null}}`), "", true},
		"NoStatus":     {"the same without any status", isNewest, patchStatus(`{"status":null}`), "", true},
		"LifecycleSSA": {"in every way", isNewest, apply("status: {lifecycle: Draft}"), "", true},
		"LifecyclePut": {"in every way", isNewest, replaceStatus(map[string]any{"lifecycle": "Draft"}), "", true},
		"Promote":      {"a draft would need no commit to be published", isDraft, patchStatus(`{"status":{"lifecycle":"Published"}}`), "", true},
		"Commit":       {"an approver goes by the commit", isProposed, patchStatus(`{"status":{"commit":"` + commit2 + `"}}`), "", true},
		"Tree":         {"and by the tree", isProposed, patchStatus(`{"status":{"tree":"` + commit1 + `"}}`), "", true},
		"Conflicts":    {"and by the conflicts", isProposed, patchStatus(`{"status":{"conflictCount":0,"conflictDigest":"` + digest + `"}}`), "", true},
		"Ref":          {"and by the reference", isProposed, patchStatus(`{"status":{"ref":"refs/heads/main"}}`), "", true},
		"Revision":     {"and by the number", isNewest, patchStatus(`{"status":{"revision":7}}`), "", true},
		"Artifact": {
			"and by the files", isProposed, patchStatus(`{"status":{"artifact":{"path":"a","url":"http://a","revision":"a",` +
				`"digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`), "", true,
		},
		"Condition": {
			"others may say something too", isProposed, patchStatus(`{"status":{"conditions":[{"type":"Reviewed","status":"True",` +
				`"reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), "", false,
		},
		"ByTheSpec": {"status is written by its own subresource alone", isNewest, patch(`{"status":{"lifecycle":"Draft"}}`), "", false},
	})
}
