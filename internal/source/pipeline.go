package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/storage"
)

// archiveTimeout is how long archiving may take where spec.timeout is shorter.
const archiveTimeout = 5 * time.Minute

// Observer is told how long the steps of a run took, and what came of it.
type Observer interface {
	Step(kind string, stage Stage, took time.Duration)
	Stored(object storage.Object, size int64)
	Run(kind string, changed bool)
}

// Pipeline runs sessions of any kind of source.
type Pipeline struct {
	Store storage.Store
	// Limits bound what goes into an artifact.
	Limits archive.Limits
	// MaxArtifactBytes bounds the stored artifact; zero means no limit.
	MaxArtifactBytes int64
	// Slots bound how much is fetched and archived at once: that takes memory, disk and CPU, where asking upstream what is
	// new takes nothing. Nil means no bound.
	Slots *fair.Pool
	// Memory and Files are what fetching and archiving draw from; nil means no bound.
	Memory   *memory.Budget
	Files    *memory.Budget
	Clock    clock.PassiveClock
	Observer Observer

	shared sharing
}

// run is one object's way through the pipeline.
type run struct {
	*Pipeline

	subject Subject
	// left is what is left of the time that upstream has for all steps. Waiting for a slot or for memory takes none of it,
	// and beginning anew gives none back.
	left    time.Duration
	before  storage.Record
	session Session
	// selected is what the spec selects, once that is known and proven.
	selected Selection
	// name is under which the selected content is shared.
	name string
	// changing is told what is coming; nil once it was.
	changing func(context.Context, Change) error
}

// Run takes one object from spec to a durable record. It calls changing before it fetches, and only then: a run
// that finds everything in place, for this object or for others, says nothing. Errors are StageErrors.
func (p *Pipeline) Run(
	ctx context.Context, subject Subject, open func(context.Context) (Session, error), changing func(context.Context, Change) error,
) (Outcome, error) {
	r := &run{Pipeline: p, subject: subject, left: subject.Timeout, changing: changing}
	if err := r.record(ctx); err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	defer r.close()
	if err := r.resolve(ctx, open); err != nil {
		return Outcome{Known: true, Record: r.before}, err
	}
	outcome := Outcome{Known: true, Record: r.before, Selected: r.selected}
	if upToDate(r.before, r.selected) {
		p.Observer.Run(subject.Object.Kind, false)
		return outcome, nil
	}
	r.name, _ = ask(ctx, r, func(ctx context.Context) (string, error) { return share(ctx, r.session, r.selected), nil })
	if !r.shared.has(r.name) { // What is there is the object's artifact before anybody could read that it is coming.
		if err := r.announce(ctx); err != nil {
			return outcome, err
		}
	}

	var made Outcome
	err := r.do(ctx, func(ctx context.Context) error {
		signer, err := r.verify(ctx)
		if err != nil {
			return err
		}
		made, err = r.make(ctx, signer)
		return err
	})
	if err != nil {
		return outcome, err
	}
	p.Observer.Stored(subject.Object, made.Record.Current.Size)
	p.Observer.Run(subject.Object.Kind, true)
	return made, nil
}

// close lets go of what the session holds, if it is one that holds something.
func (r *run) close() {
	if closer, ok := r.session.(io.Closer); ok {
		_ = closer.Close() // All that counts was stored.
	}
}

// announce says what is coming, unless it was said before.
func (r *run) announce(ctx context.Context) error {
	changing := r.changing
	if r.changing = nil; changing == nil {
		return nil
	}
	if err := changing(ctx, Change{Revision: r.selected.Revision, Previous: r.before.Current.Revision, News: r.selected.News}); err != nil {
		return fmt.Errorf("announce revision %q: %w", r.selected.Revision, err)
	}
	return nil
}

// spend takes from the time that is left what passes until the function is called that it returns.
func (r *run) spend() func() {
	began := r.Clock.Now()
	return func() { r.left -= r.Clock.Since(began) }
}

// resolve opens the session and finds what the spec selects. A selection that is not clear, or not proven, is looked into.
// That may take a download, and so takes a slot and memory.
func (r *run) resolve(ctx context.Context, open func(context.Context) (Session, error)) (err error) {
	if r.session, err = ask(ctx, r, open); err != nil {
		return failure.At(StageOpen, err)
	}
	if rememberer, ok := r.session.(Rememberer); ok {
		rememberer.Remember(r.before)
	}
	// A list of refs may be long, and then it is drawn: but for that no slot is needed.
	if err = r.Memory.Do(ctx, r.subject.wish(), nil, func(ctx context.Context) (err error) {
		r.selected, err = ask(ctx, r, timed(r, StageResolve, r.session.Resolve))
		return err
	}); err != nil {
		return failure.At(StageResolve, err)
	}
	confirmer, ok := r.session.(Confirmer)
	if !ok || r.selected.Revision != "" && proven(r.before, r.selected) {
		return nil
	}
	found := r.selected
	return failure.At(StageResolve, r.do(ctx, func(ctx context.Context) (err error) {
		r.selected, err = ask(ctx, r, timed(r, StageResolve, func(ctx context.Context) (Selection, error) { return confirmer.Confirm(ctx, found) }))
		return err
	}))
}

// do works once there is a slot, and memory and temporary files to draw from.
func (r *run) do(ctx context.Context, work func(context.Context) error) error {
	return r.Within(ctx, r.subject.wish(), work)
}

// proven tells whether what has to be proven is on record.
func proven(record storage.Record, selected Selection) bool {
	return selected.Proof == "" || selected.Proof == record.Proof
}

// verify asks a session that can prove things for a proof.
func (r *run) verify(ctx context.Context) (signer string, err error) {
	verifier, ok := r.session.(Verifier)
	if !ok {
		return "", nil
	}
	return ask(ctx, r, timed(r, StageVerify, func(ctx context.Context) (string, error) { return verifier.Verify(ctx, r.selected) }))
}

// make makes the selected content the object's artifact.
func (r *run) make(ctx context.Context, signer string) (Outcome, error) {
	upstream, cancel := context.WithTimeout(ctx, r.left)
	defer cancel()
	content, staged, err := r.shared.once(ctx, upstream, r.Store, r.name, func(fetched func()) (Content, storage.Staged, error) {
		return r.bring(ctx, upstream, fetched)
	})
	if err != nil {
		if errors.Is(err, errWaited) {
			err = bounded(upstream, r.subject, err)
		}
		return Outcome{}, err
	}
	if content.Revision != "" {
		r.selected.Revision, r.selected.Name = content.Revision, content.Name
	}
	stored, err := r.publish(ctx, content, signer, staged)
	if err == nil {
		// What status has never named would pile up where status cannot be written.
		_, err = r.Store.Collect(ctx, r.subject.Object, r.subject.named())
	}
	made := Outcome{Changed: true, Known: true, Record: stored, Selected: r.selected, SkippedLinks: content.SkippedLinks}
	return made, failure.At(StageStore, err)
}

// bring fetches the selected content and stages it. It tells when a tree has been fetched.
func (r *run) bring(ctx, upstream context.Context, fetched func()) (content Content, staged storage.Staged, err error) {
	if err := r.announce(ctx); err != nil { // What was there for others may have gone from the store.
		return content, staged, err
	}
	// What is stored is taken hold of first: a session is told of it only if it is really there.
	staged, have, err := r.keep(ctx)
	if err != nil {
		return content, staged, failure.At(StageStore, err)
	}
	spent := r.spend()
	content, err = timed(r, StageFetch, func(ctx context.Context) (Content, error) { return r.session.Fetch(ctx, r.selected, have) })(upstream)
	spent()
	if content.Close != nil {
		defer func() { _ = content.Close() }()
	}
	reused := err == nil && have != "" && content.Key == have && content.Tree == nil && content.Blob == nil && content.Make == nil
	if reused {
		content.Title = r.before.Title
	}
	if have != "" && !reused {
		err = errors.Join(err, failure.At(StageStore, r.Store.Discard(context.WithoutCancel(ctx), staged)))
	}
	err = bounded(upstream, r.subject, err)
	if err == nil && content.Tree != nil {
		fetched()
	}
	if err == nil && !reused {
		staged, err = r.archive(ctx, upstream, content)
	}
	return content, staged, err
}

// archive stages the content. A tree is local by now, and may take longer than upstream was given; but a slot is not held
// for ever.
func (r *run) archive(ctx, upstream context.Context, content Content) (storage.Staged, error) {
	limit := max(r.subject.Timeout, archiveTimeout)
	archiving, stop := context.WithTimeout(ctx, limit)
	defer stop()
	staged, err := timed(r, StageArchive, func(ctx context.Context) (storage.Staged, error) { return r.stage(ctx, content, r.before.Current) })(archiving)
	if err != nil && errors.Is(archiving.Err(), context.DeadlineExceeded) {
		return staged, fmt.Errorf("%w: archiving took longer than %s", err, limit)
	}
	return staged, bounded(upstream, r.subject, err) // A blob comes from upstream while it is stored.
}

// keep stages the stored artifact again, if its content has a key by which a session can know it.
func (r *run) keep(ctx context.Context) (staged storage.Staged, key string, err error) {
	if r.before.ContentKey == "" {
		return staged, "", nil
	}
	staged = storage.Staged{Digest: r.before.Current.Digest, Size: r.before.Current.Size, Companion: r.before.Current.Companion}
	err = r.Store.Restage(ctx, staged)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return storage.Staged{}, "", nil
	}
	return staged, r.before.ContentKey, err
}

// record reads the object's record; it stays the zero record when nothing usable is stored.
func (r *run) record(ctx context.Context) error {
	record, err := r.Store.Record(ctx, r.subject.Object)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
	case err != nil:
		return fmt.Errorf("read record: %w", err)
	case record.UID != r.subject.UID:
		// A namesake was deleted while nobody watched. Nothing of its content may pass to this object.
		if err := r.Store.Delete(ctx, r.subject.Object); err != nil {
			return fmt.Errorf("remove artifacts of a deleted namesake: %w", err)
		}
	default:
		r.before = record
	}
	return nil
}

// upToDate compares the record kept beside the artifact with what the spec selects now. Status is never asked.
func upToDate(record storage.Record, selected Selection) bool {
	return record.Current.Revision == selected.Revision && record.ConfigChecksum == selected.ConfigChecksum && proven(record, selected)
}

// stage writes the content aside.
func (p *Pipeline) stage(ctx context.Context, content Content, current storage.Artifact) (storage.Staged, error) {
	switch {
	case content.Tree != nil:
		return p.stageTree(ctx, content, current)
	case content.Blob == nil && content.Make != nil:
		return p.stageMade(ctx, content)
	}
	return p.stageBlob(ctx, content)
}

// stageBlob writes a blob aside, if it is what its digest says. The store hashes what it writes: where it does so with the
// algorithm of the blob's digest, one hash is both the artifact's name and the proof.
func (p *Pipeline) stageBlob(ctx context.Context, content Content) (storage.Staged, error) {
	blob, want := content.Blob, content.Digest
	if err := want.Validate(); err != nil && want != "" {
		return storage.Staged{}, failure.At(StageFetch, fmt.Errorf("digest %q of the content: %w", want, err))
	}
	var verifier digest.Verifier
	if want != "" && want.Algorithm() != p.Store.Algorithm() {
		verifier = want.Verifier()
		blob = io.TeeReader(blob, verifier)
	}
	staged, err := p.Store.Stage(ctx, p.MaxArtifactBytes, func(w io.Writer) error {
		_, err := io.Copy(w, blob)
		return err
	})
	if err != nil || want == "" || staged.Digest == want || verifier != nil && verifier.Verified() {
		return staged, err
	}
	discard := p.Store.Discard(context.WithoutCancel(ctx), staged)
	return storage.Staged{}, errors.Join(failure.At(StageFetch, fmt.Errorf("%w %s", ErrDigest, want)), failure.At(StageStore, discard))
}

// bounded says that the spec's timeout was the cause when it was.
func bounded(upstream context.Context, subject Subject, err error) error {
	switch {
	case !errors.Is(upstream.Err(), context.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded):
		return err
	case subject.Asked > subject.Timeout:
		return fmt.Errorf("%w: spec.timeout of %s, cut to %s by --max-timeout, was not enough", err, subject.Asked, subject.Timeout)
	}
	return fmt.Errorf("%w: spec.timeout of %s was not enough", err, subject.Timeout)
}

// ask gives upstream the time that is left, and takes from it what passes.
func ask[T any](ctx context.Context, r *run, do func(context.Context) (T, error)) (T, error) {
	upstream, cancel := context.WithTimeout(ctx, r.left)
	defer cancel()
	defer r.spend()()
	result, err := do(upstream)
	return result, bounded(upstream, r.subject, err)
}

// timed is one stage that says how long it took, and marks its error with the stage unless it has one.
func timed[T any](r *run, stage Stage, do func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		start := r.Clock.Now()
		result, err := do(ctx)
		r.Observer.Step(r.subject.Object.Kind, stage, r.Clock.Since(start))
		return result, failure.At(stage, err)
	}
}
