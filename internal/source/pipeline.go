package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
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
	Store storage.Writer
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
}

// Run takes one object from spec to a durable record. It calls changing before it fetches, and only then: a run
// that finds everything in place returns the record as it is. Errors are StageErrors.
func (p *Pipeline) Run(
	ctx context.Context, subject Subject, open func(context.Context) (Session, error), changing func(context.Context, Change) error,
) (Outcome, error) {
	record, err := p.record(ctx, subject)
	if err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	left := &patience{clock: p.Clock, left: subject.Timeout}
	session, selected, err := p.resolve(ctx, subject, open, left)
	if err != nil {
		return Outcome{Known: true, Record: record}, err
	}
	selected, err = p.confirm(ctx, subject, session, record, selected, left)
	if err != nil {
		return Outcome{Known: true, Record: record}, err
	}
	outcome := Outcome{Known: true, Record: record, Selected: selected}
	if upToDate(record, selected) {
		p.Observer.Run(subject.Object.Kind, false)
		return outcome, nil
	}
	if err := changing(ctx, Change{Revision: selected.Revision, Previous: record.Current.Revision}); err != nil {
		return outcome, fmt.Errorf("announce revision %q: %w", selected.Revision, err)
	}

	var made Outcome
	err = p.do(ctx, subject, func(ctx context.Context) error {
		signer, err := p.verify(ctx, subject, session, selected, left)
		if err != nil {
			return err
		}
		made, err = p.make(ctx, subject, session, outcome, signer, left)
		return err
	})
	if err != nil {
		return outcome, err
	}
	p.Observer.Stored(subject.Object, made.Record.Current.Size)
	p.Observer.Run(subject.Object.Kind, true)
	return made, nil
}

// patience is what is left of the time that upstream has for all steps of a run. Waiting for a slot or for memory takes
// none of it, and beginning anew gives none back.
type patience struct {
	clock clock.PassiveClock
	left  time.Duration
}

// limit gives a context that ends with it.
func (w *patience) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.left)
}

// spend takes from it what passes until the function is called that it returns.
func (w *patience) spend() func() {
	began := w.clock.Now()
	return func() { w.left -= w.clock.Since(began) }
}

// resolve opens the session and finds what the spec selects.
func (p *Pipeline) resolve(
	ctx context.Context, subject Subject, open func(context.Context) (Session, error), left *patience,
) (Session, Selection, error) {
	upstream, cancel := left.limit(ctx)
	defer cancel()
	defer left.spend()()
	session, err := open(upstream)
	if err != nil {
		return nil, Selection{}, failure.At(StageOpen, bounded(upstream, subject, err))
	}
	selected, err := step(p, subject, StageResolve, func() (Selection, error) { return session.Resolve(upstream) })
	if err != nil {
		return nil, Selection{}, bounded(upstream, subject, err)
	}
	return session, selected, nil
}

// confirm has a selection looked into that is not clear, or not proven. That may take a download, and so takes a slot and
// memory.
func (p *Pipeline) confirm(
	ctx context.Context, subject Subject, session Session, record storage.Record, selected Selection, left *patience,
) (confirmed Selection, err error) {
	confirmer, ok := session.(Confirmer)
	if !ok || selected.Revision != "" && proven(record, selected) {
		return selected, nil
	}
	err = p.do(ctx, subject, func(ctx context.Context) (err error) {
		upstream, cancel := left.limit(ctx)
		defer cancel()
		defer left.spend()()
		confirmed, err = step(p, subject, StageResolve, func() (Selection, error) { return confirmer.Confirm(upstream, selected) })
		return bounded(upstream, subject, err)
	})
	return confirmed, failure.At(StageResolve, err)
}

// do works once there is a slot, and memory and temporary files to draw from.
func (p *Pipeline) do(ctx context.Context, subject Subject, work func(context.Context) error) error {
	return p.Files.Do(ctx, subject.wish(), nil, func(ctx context.Context) error {
		return p.Memory.Do(ctx, subject.wish(), p.Slots, work)
	})
}

// proven tells whether what has to be proven is on record.
func proven(record storage.Record, selected Selection) bool {
	return selected.Proof == "" || selected.Proof == record.Proof
}

// verify asks a session that can prove things for a proof.
func (p *Pipeline) verify(
	ctx context.Context, subject Subject, session Session, selected Selection, left *patience,
) (signer string, err error) {
	verifier, ok := session.(Verifier)
	if !ok {
		return "", nil
	}
	upstream, cancel := left.limit(ctx)
	defer cancel()
	defer left.spend()()
	signer, err = step(p, subject, StageVerify, func() (string, error) { return verifier.Verify(upstream, selected) })
	return signer, bounded(upstream, subject, err)
}

// make fetches the selected content and makes it the object's artifact.
func (p *Pipeline) make(
	ctx context.Context, subject Subject, session Session, before Outcome, signer string, left *patience,
) (Outcome, error) {
	upstream, cancel := left.limit(ctx)
	defer cancel()
	// What is stored is taken hold of first: a session is told of it only if it is really there.
	staged, have, err := p.keep(ctx, subject, before.Record)
	if err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	spent := left.spend()
	content, err := step(p, subject, StageFetch, func() (Content, error) { return session.Fetch(upstream, before.Selected, have) })
	spent()
	if content.Close != nil {
		defer func() { _ = content.Close() }()
	}
	reused := err == nil && have != "" && content.Key == have && content.Tree == nil && content.Blob == nil
	if reused {
		content.Title = before.Record.Title
	}
	if have != "" && !reused {
		err = errors.Join(err, failure.At(StageStore, p.Store.Discard(context.WithoutCancel(ctx), staged)))
	}
	err = bounded(upstream, subject, err)
	if err == nil && !reused {
		staged, err = p.archive(ctx, upstream, subject, content)
	}
	if err != nil {
		return Outcome{}, err
	}
	stored, err := p.publish(ctx, subject, before, content, signer, staged)
	if err == nil {
		// What status has never named would pile up where status cannot be written.
		_, err = p.Store.Collect(ctx, subject.Object, subject.named())
	}
	made := Outcome{Changed: true, Known: true, Record: stored, Selected: before.Selected, SkippedLinks: content.SkippedLinks}
	return made, failure.At(StageStore, err)
}

// archive stages the content. A tree is local by now, and may take longer than upstream was given; but a slot is not held
// for ever.
func (p *Pipeline) archive(ctx, upstream context.Context, subject Subject, content Content) (storage.Staged, error) {
	limit := max(subject.Timeout, archiveTimeout)
	archiving, stop := context.WithTimeout(ctx, limit)
	defer stop()
	staged, err := step(p, subject, StageArchive, func() (storage.Staged, error) { return p.stage(archiving, content) })
	if err != nil && errors.Is(archiving.Err(), context.DeadlineExceeded) {
		return staged, fmt.Errorf("%w: archiving took longer than %s", err, limit)
	}
	return staged, bounded(upstream, subject, err) // A blob comes from upstream while it is stored.
}

// keep stages the stored artifact again, if its content has a key by which a session can know it.
func (p *Pipeline) keep(ctx context.Context, subject Subject, record storage.Record) (storage.Staged, string, error) {
	if record.ContentKey == "" {
		return storage.Staged{}, "", nil
	}
	staged, err := p.Store.Restage(ctx, subject.Object)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return storage.Staged{}, "", nil
	}
	return staged, record.ContentKey, err
}

// record returns the object's record; the zero record when nothing usable is stored.
func (p *Pipeline) record(ctx context.Context, subject Subject) (storage.Record, error) {
	record, err := p.Store.Record(ctx, subject.Object)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
		return storage.Record{}, nil
	case err != nil:
		return storage.Record{}, fmt.Errorf("read record: %w", err)
	case record.UID != subject.UID:
		// A namesake was deleted while nobody watched. Nothing of its content may pass to this object.
		if err := p.Store.Delete(ctx, subject.Object); err != nil {
			return storage.Record{}, fmt.Errorf("remove artifacts of a deleted namesake: %w", err)
		}
		return storage.Record{}, nil
	default:
		return record, nil
	}
}

// upToDate compares the record kept beside the artifact with what the spec selects now. Status is never asked.
func upToDate(record storage.Record, selected Selection) bool {
	return record.Current.Revision == selected.Revision && record.ConfigChecksum == selected.ConfigChecksum && proven(record, selected)
}

// stage writes the content aside.
func (p *Pipeline) stage(ctx context.Context, content Content) (storage.Staged, error) {
	if content.Tree == nil {
		return p.stageBlob(ctx, content)
	}
	rules, err := archive.ReadRules(ctx, content.Tree, content.Ignore, p.Limits)
	if err != nil {
		return storage.Staged{}, failure.Retry("SourceIgnoreError", fmt.Errorf("read ignore rules: %w", err))
	}
	return p.Store.Stage(ctx, p.MaxArtifactBytes, func(w io.Writer) error {
		return archive.Write(ctx, w, content.Tree, rules, p.Limits)
	})
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

// publish makes the staged body the object's current artifact.
func (p *Pipeline) publish(
	ctx context.Context, subject Subject, outcome Outcome, content Content, signer string, staged storage.Staged,
) (storage.Record, error) {
	before, selected := outcome.Record, outcome.Selected
	next := storage.Record{
		UID:            subject.UID,
		ConfigChecksum: selected.ConfigChecksum,
		Proof:          selected.Proof,
		ContentKey:     content.Key,
		VerifiedBy:     signer,
		Title:          content.Title,
		BaseChecksum:   before.BaseChecksum,
		Current: storage.Artifact{
			Revision: selected.Revision,
			StoredAt: p.Clock.Now().UTC().Truncate(time.Second),
			Metadata: content.Metadata,
		},
	}
	if next.BaseChecksum == "" {
		next.BaseChecksum = baseChecksum(subject, selected, staged)
	}
	next.Current.Path = path.Join(subject.Object.Dir(), fileName(before, next, selected, staged))
	if next.Current.Path == before.Current.Path && staged.Digest == before.Current.Digest {
		// Proven by other keys, say. What is stored has been there since then.
		next.Current.StoredAt = before.Current.StoredAt
	}
	stored, err := p.Store.Publish(ctx, subject.Object, staged, next)
	if errors.Is(err, storage.ErrPathTaken) {
		next.Current.Path = path.Join(subject.Object.Dir(), contentName(selected, staged))
		stored, err = p.Store.Publish(ctx, subject.Object, staged, next)
	}
	if err != nil {
		discard := p.Store.Discard(context.WithoutCancel(ctx), staged)
		return storage.Record{}, errors.Join(fmt.Errorf("publish revision %q: %w", selected.Revision, err), discard)
	}
	return stored, nil
}

// neverPlain is the base of an object whose past is not known: no configuration has it as its checksum.
const neverPlain = "unknown"

// baseChecksum is the base of an object without a record. When status names an artifact all the same, the storage was
// lost, and with it the knowledge which plain names have been served. They may be used again only where status shows
// that the configuration, and so the bytes behind every plain name, are the same as before.
func baseChecksum(subject Subject, selected Selection, staged storage.Staged) string {
	reported := subject.Reported
	if reported == nil {
		return selected.ConfigChecksum
	}
	plain := !strings.Contains(strings.TrimSuffix(path.Base(reported.Path), selected.Extension), "-")
	same := subject.ReportedChecksum == selected.ConfigChecksum && reported.Revision != selected.Revision
	if plain && (same || reported.Digest == staged.Digest) {
		return selected.ConfigChecksum
	}
	return neverPlain
}

// fileName chooses the artifact's file name so that a published URL never serves other bytes: the plain name is
// used only under the configuration that the object started with, where the revision alone decides the bytes.
// Everything else carries its digest in its name.
func fileName(before, next storage.Record, selected Selection, staged storage.Staged) string {
	switch {
	case before.Current.Revision == selected.Revision && before.Current.Digest == staged.Digest:
		return path.Base(before.Current.Path)
	case next.BaseChecksum == selected.ConfigChecksum:
		return selected.Name + selected.Extension
	default:
		return contentName(selected, staged)
	}
}

// contentName is a file name that is bound to the bytes.
func contentName(selected Selection, staged storage.Staged) string {
	return selected.Name + "-" + staged.Digest.Encoded()[:12] + selected.Extension
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

// step runs one stage, times it, and marks its error with the stage unless it has one.
func step[T any](p *Pipeline, subject Subject, stage Stage, run func() (T, error)) (T, error) {
	start := p.Clock.Now()
	result, err := run()
	p.Observer.Step(subject.Object.Kind, stage, p.Clock.Since(start))
	return result, failure.At(stage, err)
}
