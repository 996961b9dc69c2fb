package approval_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	setOf      = "spec: {upstream: {repo: a, package: b}, targets: [{repositorySelector: {}}, {repositories: [{name: a}]"
	manualSet  = setOf + "}]}"
	alwaysSet  = setOf + ", template: {approval: {policy: Always}}}]}"
	initialSet = setOf + ", template: {approval: {policy: Initial}}}]}"
	dryRunSet  = setOf + ", template: {approval: {policy: Always}}}], dryRun: true}"
	reviewSet  = setOf + ", template: {approval: {review: {provider: github, secretRef: {name: forge}}}}}]}"

	approvedPreview = `{"metadata":{"annotations":{"packages.sluice.dev/approved-preview":"sha256:a"}}}`
)

func TestNobodyApprovesThroughASet(t *testing.T) {
	t.Parallel()
	testAttempts(t, packagesv1.PackageVariantSetKind, map[string]attempt{
		"Manual":      {"people approve", "", nil, manualSet, false},
		"ManualSaid":  {"people approve", "", nil, setOf + ", template: {approval: {policy: Manual}}}]}", false},
		"Always":      {"every revision is approved", "", nil, alwaysSet, true},
		"Initial":     {"the first one is", "", nil, initialSet, true},
		"SetAlways":   {"a policy is not slipped in", manualSet, apply(alwaysSet), "", true},
		"Less":        {"nor changed to another", alwaysSet, apply(initialSet), "", true},
		"Back":        {"everyone may ask for people's approval", alwaysSet, apply(manualSet), "", false},
		"Upstream":    {"what is approved is the approver's", alwaysSet, patch(`{"spec":{"upstream":{"package":"c"}}}`), "", true},
		"Account":     {"and so is what selects", alwaysSet, patch(`{"spec":{"serviceAccountName":"a"}}`), "", true},
		"AccountFree": {"people approve what comes of it", manualSet, patch(`{"spec":{"serviceAccountName":"a"}}`), "", false},
		"Waves":       {"waves hold what would be published", alwaysSet, patch(`{"spec":{"rollout":{"waves":[{"name":"a"}]}}}`), "", true},
		"WavesFree":   {"people approve what comes of them", manualSet, patch(`{"spec":{"rollout":{"waves":[{"name":"a"}]}}}`), "", false},
		"Guard":       {"a guard approves nothing", alwaysSet, patch(`{"spec":{"deletionGuard":{"minPercent":0}}}`), "", false},
		"Suspend":     {"to stop is free", alwaysSet, patch(`{"spec":{"suspend":true}}`), "", false},
		"DryRun":      {"to only look is free", alwaysSet, patch(`{"spec":{"dryRun":true}}`), "", false},
		"DryRunBack":  {"to go on is not", dryRunSet, patch(`{"spec":{"dryRun":null}}`), "", true},
		"Preview":     {"a preview is approved by approvers", alwaysSet, patch(approvedPreview), "", true},
		"PreviewFree": {"people approve what comes of it", manualSet, patch(approvedPreview), "", false},
		"Review":      {"a merge on the forge approves", "", nil, reviewSet, true},
		"SetReview":   {"a forge is not slipped in", manualSet, apply(reviewSet), "", true},
		"OtherReview": {"nor another one", reviewSet, patch(`{"spec":{"targets":[{"repositories":[{"name":"a"}],"template":{"approval":{"review":{"provider":"gitea","secretRef":{"name":"a"}}}}}]}}`), "", true},
		"MoreReviews": {"nor has it other packages to approve", reviewSet, patch(`{"spec":{"targets":[{"repositories":[{"name":"b"}],"template":{"approval":{"review":{"provider":"github","secretRef":{"name":"forge"}}}}}]}}`), "", true},
		"ReviewKept":  {"people review what comes of it", reviewSet, patch(`{"spec":{"upstream":{"package":"c"}}}`), "", false},
		"ReviewAway":  {"everyone may ask for the approval of those who have the right", reviewSet, apply(manualSet), "", false},
		"Label":       {"labels are free", alwaysSet, patch(`{"metadata":{"labels":{"a":"b"}}}`), "", false},
		"Delete":      {"a deletion is only proposed", alwaysSet, remove, "", false},
	})
}

// TestNobodyApprovesThroughTheRevisionOfASet: what variants are made of is written by whoever may approve, and by the controller.
func TestNobodyApprovesThroughTheRevisionOfASet(t *testing.T) {
	t.Parallel()
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	revision := func(namespace string, labels map[string]string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels}, Data: runtime.RawExtension{Raw: []byte("{}")},
		}
	}
	ofSet := map[string]string{packagesv1.SetLabel: "1"}
	for _, user := range []string{editor, approver, controller} {
		namespace, acting := newNamespace(t), actAs(t, user)
		if wrong := refusal(acting.Create(t.Context(), revision(namespace, ofSet), client.DryRunAll), user == editor); wrong != "" {
			t.Errorf("to make one as %s: %s", user, wrong)
		}
		if wrong := refusal(acting.Create(t.Context(), revision(namespace, map[string]string{"app": "db"})), false); wrong != "" {
			t.Errorf("one of something else as %s: %s", user, wrong)
		}
		if wrong := refusal(acting.Update(t.Context(), revision(namespace, ofSet)), user == editor); wrong != "" {
			t.Errorf("to take another over as %s: %s", user, wrong)
		}
	}
}
