package approval_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	setOf      = "spec: {upstream: {repo: a, package: b}, targets: [{repositorySelector: {}}, {repositories: [{name: a}]"
	manualSet  = setOf + "}]}"
	alwaysSet  = setOf + ", template: {approval: {policy: Always}}}]}"
	initialSet = setOf + ", template: {approval: {policy: Initial}}}]}"
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
		"Guard":       {"a guard approves nothing", alwaysSet, patch(`{"spec":{"deletionGuard":{"minPercent":0}}}`), "", false},
		"Suspend":     {"to stop is free", alwaysSet, patch(`{"spec":{"suspend":true}}`), "", false},
		"Label":       {"labels are free", alwaysSet, patch(`{"metadata":{"labels":{"a":"b"}}}`), "", false},
		"Delete":      {"a deletion is only proposed", alwaysSet, remove, "", false},
	})
}
