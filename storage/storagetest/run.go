// Package storagetest is the contract that every store keeps, as tests.
// It does not know how a store keeps it.
package storagetest

import (
	"context"
	_ "crypto/sha256" // Bodies are named by sha256 here.
	"io"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// Opener opens an empty store with the default retention, sha256 and the given clock. What it needs ends with the test.
type Opener func(t *testing.T, now func() time.Time) storage.Store

// Damager is what a store under test may offer beside the contract: to flip a bit of the body under a path.
// Without it the suite does not test damage.
type Damager interface {
	Damage(path string) error
}

// Run tests a store. Each test opens one of its own.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) storage.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *bench){
		"PublishedBodiesCanBeRead":                   publishedBodiesCanBeRead,
		"StagedBodiesAreNotVisible":                  stagedBodiesAreNotVisible,
		"AFailedWriteLeavesNothing":                  failedWriteLeavesNothing,
		"ABodyHasALimit":                             bodyHasALimit,
		"ACancelledStageLeavesNothing":               cancelledStageLeavesNothing,
		"ADiscardedBodyIsGone":                       discardedBodyIsGone,
		"APathKeepsItsBytes":                         pathKeepsItsBytes,
		"LatestIsWhateverIsCurrent":                  latestIsWhateverIsCurrent,
		"ABodyCanBeStagedAgain":                      bodyCanBeStagedAgain,
		"NothingCannotBeStagedAgain":                 nothingCannotBeStagedAgain,
		"PublishingIsIdempotent":                     publishingIsIdempotent,
		"TheNextArtifactSupersedes":                  nextArtifactSupersedes,
		"AnEarlierArtifactCanComeBack":               earlierArtifactCanComeBack,
		"SameBytesServeManyPaths":                    sameBytesServeManyPaths,
		"CollectKeepsWhatThePolicyKeeps":             collectKeepsWhatThePolicyKeeps,
		"WhatStatusNamesStaysForItsTTL":              namedStaysForItsTTL,
		"WhatStatusNeverNamedGoesAtOnce":             neverNamedGoes,
		"AClockSetBackCollectsNothing":               clockSetBackCollectsNothing,
		"AnOpenBodyOutlivesItsArtifact":              openBodyOutlivesItsArtifact,
		"DeleteRemovesTheObjectAlone":                deleteRemovesTheObjectAlone,
		"ObjectsAreListedInOrder":                    objectsAreListedInOrder,
		"TheRecordIsKeptWhole":                       recordIsKeptWhole,
		"HostilePathsNameNothing":                    hostilePathsNameNothing,
		"LongNamesFit":                               longNamesFit,
		"DamagedBodiesAreNotServed":                  damagedBodiesAreNotServed,
		"ADamagedArtifactCanBeMadeAgain":             damagedArtifactCanBeMadeAgain,
		"ADamagedSupersededArtifactHurtsItselfAlone": damagedSupersededHurtsItselfAlone,
		"ACompanionGoesWithItsArtifact":              companionGoesWithItsArtifact,
		"DiscardTakesTheCompanionToo":                discardTakesBoth,
		"ADamagedCompanionIsMadeAgain":               damagedCompanionIsMadeAgain,
		"ManyMayWorkAtOnce":                          manyMayWorkAtOnce,
		"ManyMayWorkOnOneObject":                     manyMayWorkOnOneObject,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &clock{now: start}
			test(t, &bench{Store: open(t, clock.Now), clock: clock})
		})
	}
}

var (
	start   = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	podinfo = storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}
)

// bench is a store under test with its clock.
type bench struct {
	storage.Store
	clock *clock
}

func (b *bench) stage(t *testing.T, body string) storage.Staged {
	t.Helper()
	staged, err := b.Stage(t.Context(), 0, func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	})
	if err != nil {
		t.Fatalf("Stage: %v", err)
	}
	return staged
}

// publish stages and publishes a body as the object's current artifact.
func (b *bench) publish(t *testing.T, object storage.Object, file, body string) storage.Record {
	t.Helper()
	record, err := b.Publish(t.Context(), object, b.stage(t, body), recordOf(object, file))
	if err != nil {
		t.Fatalf("Publish %s: %v", object.File(file), err)
	}
	return record
}

func (b *bench) read(ctx context.Context, path string) (string, storage.Artifact, error) {
	body, err := b.Open(ctx, path)
	if err != nil {
		return "", storage.Artifact{}, err
	}
	content, err := io.ReadAll(body)
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	return string(content), body.Stat(), err
}

// holds asserts that the path gives the body; absent asserts that it gives nothing.
func (b *bench) holds(t *testing.T, path, want string) {
	t.Helper()
	got, artifact, err := b.read(t.Context(), path)
	if err != nil {
		t.Fatalf("Open %q: %v", path, err)
	}
	if got != want {
		t.Errorf("Open %q: want body %q, got %q", path, want, got)
	}
	if artifact.Path != path || artifact.Digest != digest.FromString(want) || artifact.Size != int64(len(want)) {
		t.Errorf("Open %q: Stat does not describe the body: %+v", path, artifact)
	}
}

func (b *bench) absent(t *testing.T, path string) {
	t.Helper()
	_, _, err := b.read(t.Context(), path)
	wantError(t, "Open "+path, err, storage.ErrNotFound)
}

// outlive has everything superseded go: its time begins with the first look at it.
func (b *bench) outlive(t *testing.T) {
	t.Helper()
	for range 2 {
		if _, err := b.Collect(t.Context(), podinfo, ""); err != nil {
			t.Fatalf("Collect: %v", err)
		}
		b.clock.step(time.Hour)
	}
}

func (b *bench) record(t *testing.T, object storage.Object) storage.Record {
	t.Helper()
	record, err := b.Record(t.Context(), object)
	if err != nil {
		t.Fatalf("Record: %v", err)
	}
	return record
}

func (b *bench) damage(t *testing.T, path string) {
	t.Helper()
	damager, ok := b.Store.(Damager)
	if !ok {
		t.Skip("the store offers no way to damage a body")
	}
	if err := damager.Damage(path); err != nil {
		t.Fatalf("Damage %q: %v", path, err)
	}
}

func recordOf(object storage.Object, file string) storage.Record {
	return storage.Record{UID: "uid", Current: storage.Artifact{Path: object.File(file)}}
}
