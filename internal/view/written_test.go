package view_test

import (
	"testing"

	"sluice.dev/sluice/internal/view"
)

// TestStatesOfWhatControllersWrite: objects as the controllers of the kinds leave them.
func TestStatesOfWhatControllersWrite(t *testing.T) {
	t.Parallel()
	gone := "metadata: {generation: 3, deletionTimestamp: '" + minute + "'}\n"
	said := func(status, reason string) string {
		return "{type: Ready, status: '" + status + "', reason: " + reason + ", message: a, observedGeneration: 3}"
	}
	second := "metadata: {generation: 2}\n"
	for name, tc := range map[string]struct {
		reason, kind, object string
		state                view.State
		because              string
	}{
		"DeletionOfSuspended": {
			"a suspended installation stays until that is taken back", "ModuleInstallation",
			gone + "spec: {suspend: true}\nstatus: {conditions: [" + said("False", "DeletionFailed") + ", {type: Stalled, status: 'True', reason: DeletionFailed, observedGeneration: 3}]}", view.Blocked, "DeletionFailed",
		},
		"DeletionWithoutRecord": {
			"nobody knows what to remove until somebody says so", "ModuleInstallation",
			gone + "status: {conditions: [" + said("False", "InventoryLost") + ", {type: Stalled, status: 'True', reason: InventoryLost, observedGeneration: 3}]}", view.Blocked, "InventoryLost",
		},
		"StalledBeforeItsDeletion": {
			"what stalled the object is no longer in the way", "ModuleInstallation",
			gone + "status: {conditions: [" + said("False", "InvalidRange") + ", {type: Stalled, status: 'True', reason: InvalidRange, observedGeneration: 2}]}", view.Deleting, "InvalidRange",
		},
		"ArtifactOnItsWay": {
			"an installation waits for the source of its release, and says so in status.pending", "ModuleInstallation",
			second + "status: {pending: {reason: ArtifactNotReady, message: b}, conditions: [" + said("Unknown", "Progressing") + ", {type: Reconciling, status: 'True', reason: Progressing}]}", view.Waiting, "ArtifactNotReady",
		},
		"ChartWithoutSource":  {"the source has to be ready first", "HelmChart", second + "status: {conditions: [" + said("False", "NoSourceArtifact") + "]}", view.Waiting, "NoSourceArtifact"},
		"IncludeNotReady":     {"the included repository has to be ready first", "GitRepository", second + "status: {conditions: [" + said("False", "NoArtifact") + "]}", view.Waiting, "NoArtifact"},
		"VariantBeforeItsGit": {"the Repository has to be read first", "PackageVariant", second + "status: {conditions: [" + said("False", "RepositoryNotReady") + "]}", view.Waiting, "RepositoryNotReady"},
		"ChangeToApprove": {
			"a proposal waits for its approval", "PackageVariant",
			second + "status: {change: {lifecycle: Proposed}, conditions: [" + said("True", "Succeeded") + "]}", view.Held, "Proposed",
		},
		"ChangeInConflict": {
			"an approver has to accept the conflicts", "PackageVariant",
			second + "status: {change: {lifecycle: Proposed, conflictCount: 2}, conditions: [{type: Conflicted, status: 'True', reason: Conflict}, " + said("True", "Succeeded") + "]}", view.Conflicted, "Conflict",
		},
		"FrozenProposal": {
			"the package would be another", "PackageVariant",
			second + "status: {change: {lifecycle: Proposed}, conditions: [{type: UpdatePending, status: 'True', reason: FrozenProposal}, " + said("True", "Succeeded") + "]}", view.Held, "FrozenProposal",
		},
		"PreviewToApprove": {
			"a revision of the set is held", "PackageVariantSet",
			second + "status: {conditions: [{type: RolledOut, status: 'False', reason: PreviewNotApproved}, " + said("True", "Succeeded") + "]}", view.Held, "PreviewNotApproved",
		},
		"RolledOut": {
			"nothing is held", "PackageVariantSet",
			second + "status: {conditions: [{type: RolledOut, status: 'True', reason: Succeeded}, " + said("True", "Succeeded") + "]}", view.Ready, "Succeeded",
		},
		"Published": {"nothing is held", "PackageVariant", second + "status: {conditions: [" + said("True", "Succeeded") + "]}", view.Ready, "Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if fact := view.Of(read(t, tc.object+"\napiVersion: v1\nkind: "+tc.kind+"\n")); fact.State != tc.state || fact.Reason != tc.because {
				t.Errorf("%s: got %s by %q, want %s by %q", tc.reason, fact.State, fact.Reason, tc.state, tc.because)
			}
		})
	}
}
