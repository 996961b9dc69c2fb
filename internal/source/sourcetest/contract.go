// Package sourcetest holds the contract that every kind of source keeps: Run drives one through the pipeline and
// checks what comes out. It does not know which kind it is.
package sourcetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// Upstream is one source with a real upstream behind it, as the contract drives it.
type Upstream interface {
	// Open opens a session for the spec as it stands.
	Open(ctx context.Context) (source.Session, error)
	// Advance makes upstream hold other content under another revision.
	Advance()
	// Break makes upstream unreachable until heal is called.
	Break() (heal func())
	// Fetches counts how often content was downloaded.
	Fetches() int
	// Files is what an artifact of the present state must hold: path to content.
	Files() map[string]string
}

// subject is the object that the contract reconciles.
var subject = source.Subject{
	Object:  storage.Object{Kind: "thing", Namespace: "tenant", Name: "subject"},
	UID:     "uid-1",
	Timeout: time.Minute,
}

type rig struct {
	t         *testing.T
	upstream  Upstream
	store     *localtest.Store
	pipeline  *source.Pipeline
	clock     *clocktesting.FakePassiveClock
	announced []source.Change
}

// Run checks the contract. Each fact starts with an upstream of its own.
func Run(t *testing.T, open func(t *testing.T) Upstream) {
	t.Helper()
	facts := map[string]func(*rig){
		"FirstRunStoresWhatUpstreamHolds":     firstRun,
		"SecondRunFetchesNothing":             noOp,
		"NewRevisionIsStored":                 newRevision,
		"OutageKeepsTheArtifact":              outage,
		"LostStoreIsRebuiltTheSame":           lostStore,
		"ANamesakeInheritsNothing":            namesake,
		"ReportedPathIsNotGivenToOtherBytes":  reportedPath,
		"AnArtifactBeyondTheLimitIsNotStored": oversize,
	}
	maps.Copy(facts, abilities(open(t)))
	for name, fact := range facts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := localtest.Open(t, local.Options{})
			clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
			fact(&rig{t: t, upstream: open(t), store: store, clock: clock, pipeline: &source.Pipeline{
				Store: store, Clock: clock, Observer: Silent{},
			}})
		})
	}
}

func (r *rig) try(s source.Subject) (source.Outcome, error) {
	return r.pipeline.Run(r.t.Context(), s, r.upstream.Open, func(_ context.Context, change source.Change) error {
		r.announced = append(r.announced, change)
		return nil
	})
}

func (r *rig) run() source.Outcome {
	r.t.Helper()
	outcome, err := r.try(subject)
	if err != nil {
		r.t.Fatalf("run: %v", err)
	}
	return outcome
}

// check reads an artifact and compares it against its digest and against what upstream holds.
func (r *rig) check(artifact storage.Artifact) {
	r.t.Helper()
	body, err := r.store.Open(r.t.Context(), artifact.Path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	verifier := artifact.Digest.Verifier()
	if unpacker, ok := r.upstream.(Unpacker); ok {
		found := unpacker.Unpack(io.TeeReader(body, verifier))
		if diff := cmp.Diff(r.upstream.Files(), found); diff != "" || !verifier.Verified() {
			r.t.Errorf("artifact %s, as its digest says %t: -want +got:\n%s", artifact.Path, verifier.Verified(), diff)
		}
		return
	}
	tree, err := archive.Open(r.t.Context(), io.TeeReader(body, verifier), r.t.TempDir(), archive.Limits{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if _, err := io.Copy(verifier, body); err != nil || !verifier.Verified() {
		r.t.Errorf("artifact %s does not match its digest: %v", artifact.Path, err)
	}
	if diff := cmp.Diff(r.upstream.Files(), files(r.t, tree)); diff != "" {
		r.t.Errorf("artifact %s: -want +got:\n%s", artifact.Path, diff)
	}
}

func files(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func firstRun(r *rig) {
	outcome := r.run()
	if !outcome.Changed || len(r.announced) != 1 || r.announced[0].Previous != "" {
		r.t.Errorf("changed %t, announced %+v", outcome.Changed, r.announced)
	}
	r.check(outcome.Record.Current)
}

func noOp(r *rig) {
	first := r.run()
	fetches := r.upstream.Fetches()
	second := r.run()
	if second.Changed || r.upstream.Fetches() != fetches || len(r.announced) != 1 {
		r.t.Errorf("changed %t, %d more fetches, announced %+v", second.Changed, r.upstream.Fetches()-fetches, r.announced)
	}
	if diff := cmp.Diff(first.Record, second.Record); diff != "" {
		r.t.Errorf("the record changed: -first +second:\n%s", diff)
	}
}

func newRevision(r *rig) {
	first := r.run().Record.Current
	r.upstream.Advance()
	outcome := r.run()
	second := outcome.Record.Current
	if !outcome.Changed || second.Revision == first.Revision || second.Path == first.Path || second.Digest == first.Digest {
		r.t.Errorf("first %+v, second %+v", first, second)
	}
	r.check(second)
	if len(outcome.Record.Superseded) != 1 || outcome.Record.Superseded[0].Path != first.Path {
		r.t.Errorf("superseded %+v", outcome.Record.Superseded)
	}
}

func outage(r *rig) {
	first := r.run().Record.Current
	heal := r.upstream.Break()
	r.upstream.Advance()
	outcome, err := r.try(subject)
	var staged *source.StageError
	if !errors.As(err, &staged) || outcome.Record.Current.Path != first.Path || !outcome.Known {
		r.t.Fatalf("got %v, %+v", err, outcome)
	}
	if _, err := r.store.Open(r.t.Context(), first.Path); err != nil {
		r.t.Errorf("the last good artifact is gone: %v", err)
	}
	heal()
	r.check(r.run().Record.Current)
}

func lostStore(r *rig) {
	first := r.run().Record.Current
	if err := r.store.Delete(r.t.Context(), subject.Object); err != nil {
		r.t.Fatal(err)
	}
	second := r.run().Record.Current
	if first.Digest != second.Digest || first.Path != second.Path {
		r.t.Errorf("before %+v, after %+v", first, second)
	}
}

func namesake(r *rig) {
	old := r.run().Record
	reconfigurer, ok := r.upstream.(Reconfigurer)
	if ok {
		reconfigurer.Reconfigure()
	}
	other := subject
	other.UID = "uid-2"
	outcome, err := r.try(other)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(outcome.Record.Superseded) != 0 || outcome.Record.UID != other.UID || ok && outcome.Record.BaseChecksum == old.BaseChecksum {
		r.t.Errorf("got %+v", outcome.Record)
	}
}

func reportedPath(r *rig) {
	plain := r.run().Record.Current
	if err := r.store.Delete(r.t.Context(), subject.Object); err != nil {
		r.t.Fatal(err)
	}
	reported := plain
	reported.Digest = digest.FromString("what the lost artifact held")
	s := subject
	s.Reported = &reported
	outcome, err := r.try(s)
	if err != nil {
		r.t.Fatal(err)
	}
	if outcome.Record.Current.Path == plain.Path {
		r.t.Errorf("%s may have served other bytes before", plain.Path)
	}
	r.check(outcome.Record.Current)
}

func refusedAnnouncement(r *rig) {
	fetches := r.upstream.Fetches()
	refused := errors.New("the object has changed")
	_, err := r.pipeline.Run(r.t.Context(), subject, r.upstream.Open, func(context.Context, source.Change) error { return refused })
	if !errors.Is(err, refused) || r.upstream.Fetches() != fetches {
		r.t.Errorf("got %v after %d fetches", err, r.upstream.Fetches()-fetches)
	}
}

func oversize(r *rig) {
	first := r.run().Record.Current
	r.upstream.Advance()
	r.pipeline.MaxArtifactBytes = 10
	if _, err := r.try(subject); !errors.Is(err, storage.ErrTooLarge) {
		r.t.Errorf("got %v", err)
	}
	record, err := r.store.Record(r.t.Context(), subject.Object)
	if err != nil || record.Current.Path != first.Path {
		r.t.Errorf("got %+v, %v", record, err)
	}
}

// Silent is an observer that looks away.
type Silent struct{}

// Step implements source.Observer.
func (Silent) Step(string, source.Stage, time.Duration) {}

// Stored implements source.Observer.
func (Silent) Stored(storage.Object, int64) {}

// Run implements source.Observer.
func (Silent) Run(string, bool) {}
