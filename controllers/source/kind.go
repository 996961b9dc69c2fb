// Package source holds the controllers of the source kinds: one short file a kind, and what they share.
// It does not know how content is fetched, stored or served.
package source

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/storage"
)

// Finalizer is the finalizer of all source kinds; it is Flux's.
const Finalizer = "finalizers.fluxcd.io"

// fields are the fields that every source kind has, each in its own place of the object.
type fields struct {
	kernel.View

	checksum *string
	artifact **meta.Artifact
	// latest is where a kind that has such a field shows the address of whatever artifact is current; else nil.
	latest *string
}

// kind makes any source kind a kernel.Kind: what differs between kinds are its functions.
type kind[O kernel.Object] struct {
	shared Shared

	name   string // as the API spells it, e.g. GitRepository
	dir    string // as paths spell it, e.g. gitrepository
	latest string // file of whatever artifact is current; storage.LatestFile when empty
	// revisionsOf is what has revisions, see source.Change.
	revisionsOf string
	new         func() O
	fields      func(O) fields
	table       status.Table
	opener      source.Opener[O]
	// timeout is that of an object whose spec has none; nil where all have one.
	timeout func(ctx context.Context, obj O) time.Duration
	// observe writes the status fields that are special to the kind, after a success.
	observe func(obj O, outcome source.Outcome)
	// proof is the message of SourceVerified, for a record with a signer.
	proof func(record storage.Record) string
	// reason is that of success, for a record; nil where it is always the same.
	reason func(record storage.Record) string
	// stored is the success message for a record; told is the message of the event for the current artifact, which goes by
	// its title where it has one. Fetched says that it was made just now.
	stored func(record storage.Record) string
	told   func(obj O, record storage.Record, fetched bool) string
	// warned says what people should look at when another artifact takes the place of one; nil, or no reason, for nothing.
	warned func(was *meta.Artifact, record storage.Record) (reason, message string)
}

var (
	_ kernel.Kind[*sourcev1.GitRepository, source.Outcome]  = (*kind[*sourcev1.GitRepository])(nil)
	_ kernel.Owner[*sourcev1.GitRepository, source.Outcome] = (*kind[*sourcev1.GitRepository])(nil)
)

func (k *kind[O]) New() O { return k.new() }

func (k *kind[O]) Table() status.Table { return k.table }

func (k *kind[O]) View(obj O) kernel.View { return k.fields(obj).View }

// Work implements kernel.Kind: it sends the object through the pipeline.
func (k *kind[O]) Work(ctx context.Context, obj O, announce kernel.Announce) (source.Outcome, error) {
	f := k.fields(obj)
	if k.timeout != nil {
		f.Timeout = k.timeout(ctx, obj)
	}
	subject := source.Subject{
		Object: k.object(obj), UID: string(obj.GetUID()), Timeout: k.shared.Allowed(f.Timeout), Asked: f.Timeout,
		Unready: !conditions.IsReady(obj), ReportedChecksum: *f.checksum,
	}
	if reported := *f.artifact; reported != nil {
		subject.Reported = &storage.Artifact{Path: reported.Path, Revision: reported.Revision, Digest: digest.Digest(reported.Digest)}
	}
	open := func(ctx context.Context) (source.Session, error) { return k.opener.Open(ctx, obj) }
	changing := func(ctx context.Context, change source.Change) error {
		change.Of = k.revisionsOf
		return announce(ctx, status.Progress{
			Message:     change.Message(subject.Reported != nil),
			NewRevision: change.NewRevision(),
			Lost:        change.Previous == "",
			First:       subject.Reported == nil,
		})
	}
	return k.shared.Pipeline.Run(ctx, subject, open, changing)
}

// Report implements kernel.Kind. What is stored decides what status names, whatever status said before.
func (k *kind[O]) Report(obj O, outcome source.Outcome, err error) kernel.Report {
	f := k.fields(obj)
	was := *f.artifact
	if outcome.Known {
		k.publish(obj, f, outcome.Record)
	}
	if err == nil {
		// Who stored this artifact may have been killed before he could report it.
		outcome.Changed = outcome.Changed || was == nil || was.Path != outcome.Record.Current.Path
		k.observe(obj, outcome)
	}
	standing := status.Standing{Stored: *f.artifact != nil}
	if selected := outcome.Selected.Revision; selected != "" {
		standing.NewRevision = source.Change{Revision: selected, Previous: outcome.Record.Current.Revision, Of: k.revisionsOf, News: outcome.Selected.News}.NewRevision()
	}
	return kernel.Report{
		Standing: standing, Reason: k.reasonOr("", outcome.Record), Message: k.stored(outcome.Record), Proof: k.proven(outcome.Record),
	}
}

// proven is the message of SourceVerified; empty where nothing is.
func (k *kind[O]) proven(record storage.Record) string {
	if record.VerifiedBy == "" {
		return ""
	}
	return k.proof(record)
}

// publish makes status name what is stored.
func (k *kind[O]) publish(obj O, f fields, record storage.Record) {
	if f.latest != nil {
		*f.latest = ""
		if record.Current.Path != "" {
			*f.latest = k.shared.Address.URL(k.object(obj).File(cmp.Or(k.latest, storage.LatestFile)))
		}
	}
	if record.Current.Path == "" {
		*f.artifact, *f.checksum = nil, ""
		return
	}
	artifact := k.shared.published(record.Current)
	if *f.checksum == "" && equality.Semantic.DeepEqual(*f.artifact, artifact) {
		// Flux's own CRD prunes the checksum. It alone is no reason to write, or every no-op would.
		return
	}
	*f.artifact, *f.checksum = artifact, record.ConfigChecksum
}

// Events implements kernel.Kind: a failure, other bytes than before, or the end of a failure.
func (k *kind[O]) Events(before, after O, outcome source.Outcome, err error) []event.Event {
	about := event.About(after, sourcev1.GroupVersion.WithKind(k.name))
	if err != nil {
		_, reason := k.table.Explain(err)
		if failure.Of(err).Disposition == failure.Waits {
			return []event.Event{event.Waiting(about, reason, err, outcome.Selected.Revision)}
		}
		return []event.Event{event.Failed(about, reason, err, outcome.Selected.Revision)}
	}
	current := outcome.Record.Current
	was := *k.fields(before).artifact
	var events []event.Event
	if outcome.SkippedLinks != "" {
		events = append(events, event.Happened(about, sourcev1.LinksSkippedReason, outcome.SkippedLinks, current.Revision))
	}
	switch {
	case k.fields(before).Unreadable && !outcome.Changed:
		// Nobody can tell what status said before; what is stored is as it was.
	case was == nil || digest.Digest(was.Digest) != current.Digest:
		events = append(events, event.Stored(about, k.reasonOr(sourcev1.NewArtifactReason, outcome.Record), artifactOf(current), k.told(after, outcome.Record, true)))
		if k.warned == nil {
			break
		}
		if reason, message := k.warned(was, outcome.Record); reason != "" {
			events = append(events, event.Warned(about, reason, message, current.Revision))
		}
	case k.table.HasFailed(before):
		events = append(events, event.Stored(about, k.reasonOr(sourcev1.SucceededReason, outcome.Record), artifactOf(current), k.told(after, outcome.Record, outcome.Changed)))
	}
	return events
}

// reasonOr is the reason of success for a record.
func (k *kind[O]) reasonOr(usual string, record storage.Record) string {
	if k.reason == nil {
		return usual
	}
	return k.reason(record)
}

// artifactOf is an artifact as events tell of it.
func artifactOf(stored storage.Artifact) event.Artifact {
	return event.Artifact{
		Revision: stored.Revision, Digest: stored.Digest.String(), OriginRevision: stored.Metadata[ocispec.AnnotationRevision],
	}
}

// Settle implements kernel.Owner: once status names the new artifact, superseded ones may go.
func (k *kind[O]) Settle(ctx context.Context, obj O, _ source.Outcome) error {
	var named string
	if artifact := *k.fields(obj).artifact; artifact != nil {
		named = artifact.Path
	}
	removed, err := k.shared.Pipeline.Store.Collect(ctx, k.object(obj), named)
	if err != nil {
		return fmt.Errorf("collect superseded artifacts of %s: %w", k.object(obj), err)
	}
	if len(removed) > 0 {
		k.shared.Events.Emit(event.GarbageCollected(event.About(obj, sourcev1.GroupVersion.WithKind(k.name)), len(removed)))
	}
	return nil
}

// Finalize implements kernel.Owner.
func (k *kind[O]) Finalize(ctx context.Context, obj O) error {
	return k.shared.Pipeline.Store.Delete(ctx, k.object(obj))
}

func (k *kind[O]) object(obj O) storage.Object {
	return storage.Object{Kind: k.dir, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
