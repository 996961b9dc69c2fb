package status_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/status"
)

func table() status.Table {
	return status.Table{
		Stages: map[failure.Stage]status.Failure{
			"fetch":  {Condition: sourcev1.FetchFailedCondition, Reason: sourcev1.GitOperationFailedReason},
			"store":  {Condition: sourcev1.StorageOperationFailedCondition, Reason: sourcev1.ArchiveOperationFailedReason},
			"verify": {Condition: sourcev1.SourceVerifiedCondition, Reason: sourcev1.VerificationErrorReason},
		},
		Verified: sourcev1.SourceVerifiedCondition,
		Stored:   sourcev1.ArtifactInStorageCondition,
		Outdated: sourcev1.ArtifactOutdatedCondition,
		Summary: []string{
			sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition, sourcev1.ArtifactOutdatedCondition,
			sourcev1.ArtifactInStorageCondition, meta.StalledCondition, meta.ReconcilingCondition,
		},
	}
}

func TestStepsFollowEachOther(t *testing.T) {
	t.Parallel()
	const done, down, full, bad = "True Succeeded: done", "connection refused", "disk full", "no such scheme"
	const forged = "no trusted signature"
	retrying := "True ProgressingWithRetry: " + status.Retrying
	cases := map[string]struct {
		reason string
		steps  []func(status.Table, conditions.Setter)
		want   map[string]string
	}{
		"First": {
			"the first build has nothing that could be outdated",
			[]func(status.Table, conditions.Setter){first},
			map[string]string{"Reconciling": "True Progressing: building", "Ready": "Unknown Progressing: building"},
		},
		"NewRevision": {
			"while a new revision is built, the old artifact is in storage and outdated",
			[]func(status.Table, conditions.Setter){succeed, next},
			map[string]string{
				"Reconciling": "True Progressing: building", "Ready": "Unknown Progressing: building",
				"ArtifactOutdated": "True NewRevision: new", "ArtifactInStorage": done,
			},
		},
		"Lost": {
			"an artifact that is gone is not in storage",
			[]func(status.Table, conditions.Setter){succeed, lost},
			map[string]string{"Reconciling": "True Progressing: building", "Ready": "Unknown Progressing: building"},
		},
		"Done": {
			"success clears everything else",
			[]func(status.Table, conditions.Setter){succeed, next, fail("fetch", errors.New(down), status.Standing{Stored: true}), succeed},
			map[string]string{"Ready": done, "ArtifactInStorage": done},
		},
		"OnlyTheLatestFailure": {
			"a failure of one stage takes the place of that of another",
			[]func(status.Table, conditions.Setter){fail("store", errors.New(full), status.Standing{Stored: true}), fail("fetch", errors.New(down), status.Standing{Stored: true})},
			map[string]string{"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down, "Reconciling": retrying},
		},
		"FailureKeepsTheArtifact": {
			"the last good artifact stays in storage",
			[]func(status.Table, conditions.Setter){succeed, fail("store", errors.New(full), status.Standing{Stored: true})},
			map[string]string{
				"StorageOperationFailed": "True ArchiveOperationFailed: " + full, "Ready": "False ArchiveOperationFailed: " + full,
				"Reconciling": retrying, "ArtifactInStorage": done,
			},
		},
		"FailureToStoreWhatIsNew": {
			"the artifact stays outdated while the new revision cannot be stored",
			[]func(status.Table, conditions.Setter){succeed, next, fail("store", errors.New(full), status.Standing{Stored: true, NewRevision: "new"})},
			map[string]string{
				"StorageOperationFailed": "True ArchiveOperationFailed: " + full, "Ready": "False ArchiveOperationFailed: " + full,
				"Reconciling": retrying, "ArtifactInStorage": done, "ArtifactOutdated": "True NewRevision: new",
			},
		},
		"FailureWithoutArtifact": {
			"an artifact that is gone as well is not claimed",
			[]func(status.Table, conditions.Setter){succeed, fail("fetch", errors.New(down), status.Standing{Stored: false})},
			map[string]string{"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down, "Reconciling": retrying},
		},
		"StallThenRetry": {
			"a stall ends when the next failure can be retried",
			[]func(status.Table, conditions.Setter){fail("fetch", failure.Stall("URLInvalid", errors.New(bad)), status.Standing{Stored: true}), fail("fetch", errors.New(down), status.Standing{Stored: true})},
			map[string]string{"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down, "Reconciling": retrying},
		},
		"RetryThenStall": {
			"a stalled object does not claim to be reconciling",
			[]func(status.Table, conditions.Setter){fail("fetch", errors.New(down), status.Standing{Stored: true}), fail("fetch", failure.Stall("URLInvalid", errors.New(bad)), status.Standing{Stored: true})},
			map[string]string{"FetchFailed": "True URLInvalid: " + bad, "Ready": "False URLInvalid: " + bad, "Stalled": "True URLInvalid: " + bad},
		},
		"Verified": {
			"what is proven says so, and Ready speaks of the artifact",
			[]func(status.Table, conditions.Setter){prove},
			map[string]string{"Ready": done, "ArtifactInStorage": done, "SourceVerified": "True Succeeded: proven"},
		},
		"NotVerified": {
			"what is not proven is not ready, whatever else there is",
			[]func(status.Table, conditions.Setter){succeed, next, fail("verify", errors.New(forged), status.Standing{Stored: true, NewRevision: "new"})},
			map[string]string{
				"SourceVerified": "False VerificationError: " + forged, "Ready": "False VerificationError: " + forged,
				"Reconciling": retrying, "ArtifactInStorage": done, "ArtifactOutdated": "True NewRevision: new",
			},
		},
		"VerifiedAndThenDown": {
			"an outage takes no proof away",
			[]func(status.Table, conditions.Setter){prove, fail("fetch", errors.New(down), status.Standing{Stored: true})},
			map[string]string{
				"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down,
				"Reconciling": retrying, "ArtifactInStorage": done, "SourceVerified": "True Succeeded: proven",
			},
		},
		"NotVerifiedAndThenDown": {
			"nobody knows what is to be proven while upstream is down",
			[]func(status.Table, conditions.Setter){prove, fail("verify", errors.New(forged), status.Standing{Stored: true}), fail("fetch", errors.New(down), status.Standing{Stored: true})},
			map[string]string{
				"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down,
				"Reconciling": retrying, "ArtifactInStorage": done,
			},
		},
		"ProofNoLongerAsked": {
			"without spec.verify nothing speaks of verification",
			[]func(status.Table, conditions.Setter){prove, succeed},
			map[string]string{"Ready": done, "ArtifactInStorage": done},
		},
		"SuspendedUnverified": {
			"an object suspended in the middle of a retry stays refuted",
			[]func(status.Table, conditions.Setter){succeed, fail("verify", errors.New(forged), status.Standing{Stored: true}), next, status.Table.Suspended},
			map[string]string{"SourceVerified": "False VerificationError: " + forged, "Ready": "False VerificationError: " + forged, "ArtifactInStorage": done},
		},
		"SuspendedAtWork": {
			"an object suspended while it works says what is stored, not that it goes on",
			[]func(status.Table, conditions.Setter){succeed, next, status.Table.Suspended},
			map[string]string{"Ready": done, "ArtifactInStorage": done},
		},
		"SuspendedAtFirstWork": {
			"an object suspended at its first work says nothing",
			[]func(status.Table, conditions.Setter){first, status.Table.Suspended},
			map[string]string{},
		},
		"Suspended": {
			"a suspended object neither works nor is stuck, and keeps what it said",
			[]func(status.Table, conditions.Setter){fail("fetch", errors.New(down), status.Standing{Stored: true}), status.Table.Suspended},
			map[string]string{"FetchFailed": "True GitOperationFailed: " + down, "Ready": "False GitOperationFailed: " + down},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &sourcev1.GitRepository{}
			for _, step := range tc.steps {
				step(table(), obj)
			}
			got := map[string]string{}
			for _, c := range obj.Status.Conditions {
				got[c.Type] = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func first(t status.Table, obj conditions.Setter) {
	t.Progressing(obj, status.Progress{Message: "building", NewRevision: "new", First: true})
}

func next(t status.Table, obj conditions.Setter) {
	t.Progressing(obj, status.Progress{Message: "building", NewRevision: "new"})
}

func lost(t status.Table, obj conditions.Setter) {
	t.Progressing(obj, status.Progress{Message: "building", Lost: true})
}

func succeed(t status.Table, obj conditions.Setter) { t.Succeeded(obj, "", "done", "") }

func prove(t status.Table, obj conditions.Setter) { t.Succeeded(obj, "", "done", "proven") }

func fail(stage failure.Stage, err error, standing status.Standing) func(status.Table, conditions.Setter) {
	return func(t status.Table, obj conditions.Setter) { t.Failed(obj, failure.At(stage, err), standing) }
}

func TestHasFailed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		step   func(status.Table, conditions.Setter)
		want   bool
	}{
		"New":     {"an object without conditions has not failed", func(status.Table, conditions.Setter) {}, false},
		"Success": {"success is no failure", succeed, false},
		"Working": {"work in hand is no failure", next, false},
		"Retried": {"a retried failure is one", fail("fetch", errors.New("x"), status.Standing{Stored: true}), true},
		"Stalled": {"a stall is one", fail("fetch", failure.Stall("X", errors.New("x")), status.Standing{Stored: true}), true},
		"NoStage": {"a failure of no stage is one", fail("", errors.New("x"), status.Standing{Stored: true}), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &sourcev1.GitRepository{}
			tc.step(table(), obj)
			if got := table().HasFailed(obj); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

// TestSuspendedIsSaid: by kinds that have a reason for it, once, whatever Ready said before.
func TestSuspendedIsSaid(t *testing.T) {
	t.Parallel()
	saying := status.Table{SuspendedReason: "Suspended"}
	for name, tc := range map[string]struct {
		reason string
		before func(conditions.Setter)
		want   string
	}{
		"New":    {"nothing is known", func(conditions.Setter) {}, "Unknown Suspended: Suspended"},
		"AtWork": {"nobody knows how the work would have ended", func(obj conditions.Setter) { saying.Progressing(obj, status.Progress{Message: "building"}) }, "Unknown Suspended: Suspended"},
		"Ready":  {"what was ready is not looked at any more", func(obj conditions.Setter) { saying.Succeeded(obj, "", "done", "") }, "True Suspended: Suspended; before that: done"},
		"Failed": {"what had failed is not tried any more", func(obj conditions.Setter) { saying.Failed(obj, errors.New("down"), status.Standing{}) }, "False Suspended: Suspended; before that: down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &sourcev1.GitRepository{}
			tc.before(obj)
			for range 2 {
				saying.Suspended(obj)
			}
			ready := conditions.Get(obj, meta.ReadyCondition)
			if got := fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message); got != tc.want || len(obj.Status.Conditions) != 1 {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}
