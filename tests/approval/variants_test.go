package approval_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	manual  = variant + ", approval: {policy: Manual}}"
	initial = variant + ", approval: {policy: Initial}}"
	always  = variant + ", approval: {policy: Always}}"

	reviewed        = variant + ", approval: {review: {provider: github, secretRef: {name: forge}}}}"
	initialReviewed = variant + ", approval: {policy: Initial, review: {provider: github, secretRef: {name: forge}}}}"
	review          = `{"spec":{"approval":{"review":{"provider":"github","secretRef":{"name":"forge"}}}}}`
)

func TestNobodyApprovesThroughTheController(t *testing.T) {
	t.Parallel()
	testAttempts(t, packagesv1.PackageVariantKind, map[string]attempt{
		"Default":       {"people approve", "", nil, variant + "}", false},
		"Manual":        {"people approve", "", nil, manual, false},
		"Empty":         {"people approve", "", nil, variant + ", approval: {}}", false},
		"Initial":       {"the first revision is one too", "", nil, initial, true},
		"Always":        {"every revision is one", "", nil, always, true},
		"SetInitial":    {"a policy is not slipped in", manual, patch(`{"spec":{"approval":{"policy":"Initial"}}}`), "", true},
		"SetAlways":     {"a policy is not slipped in", variant + "}", patch(`{"spec":{"approval":{"policy":"Always"}}}`), "", true},
		"SetAlwaysSSA":  {"in no way", variant + "}", apply(always), "", true},
		"SetAlwaysPut":  {"in no way", variant + "}", replace(map[string]any{"approval": map[string]any{"policy": "Always"}}), "", true},
		"SetAlwaysJSON": {"in no way", variant + "}", operations(`[{"op":"add","path":"/spec/approval","value":{"policy":"Always"}}]`), "", true},
		"MoreThanFirst": {"nor is it widened", initial, patch(`{"spec":{"approval":{"policy":"Always"}}}`), "", true},
		"Less":          {"nor changed to another", always, patch(`{"spec":{"approval":{"policy":"Initial"}}}`), "", true},
		"Back":          {"everyone may ask for people's approval", always, patch(`{"spec":{"approval":{"policy":"Manual"}}}`), "", false},
		"BackUnset":     {"everyone may ask for people's approval", always, patch(`{"spec":{"approval":null}}`), "", false},
		"BackAndEdit":   {"and edit in one go", always, patch(`{"spec":{"approval":null,"namespace":"b"}}`), "", false},
		"Status":        {"a report is no request", always, patchStatus(`{"status":{"config":"sha256:a"}}`), "", false},
		"Label":         {"labels are free", always, patch(`{"metadata":{"labels":{"a":"b"}}}`), "", false},
		"Delete":        {"a deletion is only proposed", always, remove, "", false},
		"DeleteAll":     {"in every way", always, removeAll, "", false},
	})
}

// TestNobodyForgesWhatAVariantHasSeen: the conflicts that an approver has to name, and the package that it may write without taking it over.
func TestNobodyForgesWhatAVariantHasSeen(t *testing.T) {
	t.Parallel()
	const seen = manual + "\nstatus: {change: {commit: COMMIT1, conflictCount: 1}, config: a}"
	testAttempts(t, packagesv1.PackageVariantKind, map[string]attempt{
		"Conflicts":    {"a conflict would not be named", seen, patchStatus(`{"status":{"change":{"conflictCount":0}}}`), "", true},
		"Change":       {"nor would those of another commit", seen, patchStatus(`{"status":{"change":null}}`), "", true},
		"ChangePut":    {"in no way", seen, replaceStatus(map[string]any{"change": map[string]any{"commit": commit1}}), "", true},
		"NoStatus":     {"in no way", seen, patchStatus(`{"status":null}`), "", true},
		"Adopted":      {"a package of people would be written without being taken over", manual, patchStatus(`{"status":{"adopted":{"tree":"` + commit1 + `","config":"a"}}}`), "", true},
		"Config":       {"the rest is a report", seen, patchStatus(`{"status":{"config":"b"}}`), "", false},
		"SpecIsEdited": {"an edit of the spec writes no status", seen, patch(`{"spec":{"namespace":"b"}}`), "", false},
	})
}

// TestNobodyChoosesTheForgeThatApproves: a merge there is an approval.
func TestNobodyChoosesTheForgeThatApproves(t *testing.T) {
	t.Parallel()
	testAttempts(t, packagesv1.PackageVariantKind, map[string]attempt{
		"Create":      {"a merge approves", "", nil, reviewed, true},
		"Initial":     {"the later ones are merged", "", nil, initialReviewed, true},
		"Set":         {"a forge is not slipped in", manual, patch(review), "", true},
		"SetUnset":    {"a forge is not slipped in", variant + "}", patch(review), "", true},
		"SetSSA":      {"in no way", variant + "}", apply(reviewed), "", true},
		"SetJSON":     {"in no way", manual, operations(`[{"op":"add","path":"/spec/approval/review","value":{"provider":"gitea","secretRef":{"name":"a"}}}]`), "", true},
		"Provider":    {"another forge has other people", reviewed, patch(`{"spec":{"approval":{"review":{"provider":"gitea"}}}}`), "", true},
		"Secret":      {"the Secret may have another address", reviewed, patch(`{"spec":{"approval":{"review":{"secretRef":{"name":"own"}}}}}`), "", true},
		"BackAndSet":  {"nor together with another policy", initialReviewed, patch(`{"spec":{"approval":{"policy":"Manual","review":{"provider":"gitea"}}}}`), "", true},
		"Away":        {"everyone may ask for the approval of those who have the right", reviewed, patch(`{"spec":{"approval":{"review":null}}}`), "", false},
		"AwayAll":     {"everyone may ask for it", reviewed, patch(`{"spec":{"approval":null}}`), "", false},
		"AwayInitial": {"the first revision is approved as before", initialReviewed, patch(`{"spec":{"approval":{"review":null}}}`), "", false},
		"Kept":        {"people review what comes of it", reviewed, patch(`{"spec":{"upstream":{"revision":2}}}`), "", false},
		"KeptSSA":     {"the same is no change", reviewed, apply(reviewed), "", false},
		"Label":       {"labels are free", reviewed, patch(`{"metadata":{"labels":{"a":"b"}}}`), "", false},
		"Delete":      {"a deletion is only proposed", reviewed, remove, "", false},
	})
}

// edits has an edit of every field of the spec.
func edits() map[string]struct {
	patch string
	right bool // whether it takes the right to approve, where the controller approves
} {
	return map[string]struct {
		patch string
		right bool
	}{
		"upstream":           {`{"upstream":{"revision":2}}`, true},
		"downstream":         {`{"downstream":{"package":"other"}}`, true},
		"labels":             {`{"labels":{"a":"b"}}`, true},
		"annotations":        {`{"annotations":{"a":"b"}}`, true},
		"packageContext":     {`{"packageContext":{"data":{"a":"b"}}}`, true},
		"pipeline":           {`{"pipeline":{"mutators":[{"image":"set-labels"}]}}`, true},
		"injectors":          {`{"injectors":[{"name":"a"}]}`, true},
		"namespace":          {`{"namespace":"other"}`, true},
		"bindings":           {`{"bindings":[{"name":"a","from":{"packageContext":"a"}}]}`, true},
		"adoptionPolicy":     {`{"adoptionPolicy":"adoptExisting"}`, true},
		"deletionPolicy":     {`{"deletionPolicy":"orphan"}`, true},
		"conflictPolicy":     {`{"conflictPolicy":"Upstream"}`, true},
		"serviceAccountName": {`{"serviceAccountName":"a"}`, true},
		"approval":           {`{"approval":{"policy":"Manual"}}`, false},
		"dryRun":             {`{"dryRun":true}`, false},
		"suspend":            {`{"suspend":true}`, false},
		"interval":           {`{"interval":"1h"}`, false},
		"timeout":            {`{"timeout":"1h"}`, false},
	}
}

func TestEditsOfWhatTheControllerApproves(t *testing.T) {
	t.Parallel()
	cases := map[string]attempt{
		"DryRunOff": {
			"what was a dry run would be published", variant + ", approval: {policy: Always}, dryRun: true}",
			patch(`{"spec":{"dryRun":false}}`), "", true,
		},
		"DryRunUnset": {
			"what was a dry run would be published", variant + ", approval: {policy: Always}, dryRun: true}",
			patch(`{"spec":{"dryRun":null}}`), "", true,
		},
		"FieldLeaves": {
			"what leaves the spec leaves the package", variant + ", approval: {policy: Always}, labels: {a: b}}",
			patch(`{"spec":{"labels":null}}`), "", true,
		},
	}
	for field, edit := range edits() {
		cases["Always/"+field] = attempt{"what the controller approves is the approver's", always, patch(`{"spec":` + edit.patch + `}`), "", edit.right}
		cases["Initial/"+field] = attempt{"the first revision may be to come", initial, patch(`{"spec":` + edit.patch + `}`), "", edit.right}
		cases["Manual/"+field] = attempt{"people approve what comes of it", manual, patch(`{"spec":` + edit.patch + `}`), "", false}
	}
	testAttempts(t, packagesv1.PackageVariantKind, cases)
}
