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
	suspend            bool
	unreadable         bool // the status, as it came from the API server
	interval, timeout  time.Duration
	observedGeneration *int64
	lastHandled        *string
	checksum           *string
	artifact           **meta.Artifact
}

// kind makes any source kind a kernel.Kind: what differs between kinds are its functions.
type kind[O kernel.Object] struct {
	shared Shared

	name   string // as the API spells it, e.g. GitRepository
	dir    string // as paths spell it, e.g. gitrepository
	new    func() O
	fields func(O) fields
	table  status.Table
	opener source.Opener[O]
	// observe writes the status fields that are special to the kind, after a success.
	observe func(obj O, outcome source.Outcome)
	// stored is the success message for a revision; told is the message of the event for an artifact, by its title
	// or its revision.
	stored func(revision string) string
	told   func(name string) string
}

var _ kernel.Kind[*sourcev1.GitRepository, source.Outcome] = (*kind[*sourcev1.GitRepository])(nil)

// New implements kernel.Kind.
func (k *kind[O]) New() O { return k.new() }

// Table implements kernel.Kind.
func (k *kind[O]) Table() status.Table { return k.table }

// View implements kernel.Kind.
func (k *kind[O]) View(obj O) kernel.View {
	f := k.fields(obj)
	return kernel.View{
		Suspended:              f.suspend,
		Unreadable:             f.unreadable,
		Interval:               f.interval,
		ObservedGeneration:     f.observedGeneration,
		LastHandledReconcileAt: f.lastHandled,
	}
}

// Work implements kernel.Kind: it sends the object through the pipeline.
func (k *kind[O]) Work(ctx context.Context, obj O, announce kernel.Announce) (source.Outcome, error) {
	f := k.fields(obj)
	subject := source.Subject{
		Object: k.object(obj), UID: string(obj.GetUID()), Timeout: f.timeout,
		Unready: !conditions.IsReady(obj), ReportedChecksum: *f.checksum,
	}
	if reported := *f.artifact; reported != nil {
		subject.Reported = &storage.Artifact{Path: reported.Path, Revision: reported.Revision, Digest: digestOf(reported)}
	}
	open := func(ctx context.Context) (source.Session, error) { return k.opener.Open(ctx, obj) }
	changing := func(ctx context.Context, change source.Change) error {
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
	if outcome.Known {
		k.publish(f, outcome.Record)
	}
	if err == nil {
		k.observe(obj, outcome)
	}
	standing := status.Standing{Stored: *f.artifact != nil}
	if selected := outcome.Selected.Revision; selected != "" {
		standing.NewRevision = source.Change{Revision: selected, Previous: outcome.Record.Current.Revision}.NewRevision()
	}
	return kernel.Report{Standing: standing, Message: k.stored(outcome.Record.Current.Revision)}
}

// publish makes status name what is stored.
func (k *kind[O]) publish(f fields, record storage.Record) {
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
	switch {
	case k.fields(before).unreadable && !outcome.Changed:
		// Nobody can tell what status said before; what is stored is as it was.
		return nil
	case was == nil || digestOf(was) != current.Digest:
		return []event.Event{event.NewArtifact(about, current.Revision, current.Digest.String(), k.told(cmp.Or(outcome.Record.Title, current.Revision)))}
	case k.table.HasFailed(before):
		// As in Flux, a recovery that fetches nothing is told by the revision.
		name := current.Revision
		if outcome.Changed {
			name = cmp.Or(outcome.Record.Title, name)
		}
		return []event.Event{event.Recovered(about, current.Revision, current.Digest.String(), k.told(name))}
	default:
		return nil
	}
}

// Settle implements kernel.Kind: once status names the new artifact, superseded ones may go.
func (k *kind[O]) Settle(ctx context.Context, obj O) error {
	removed, err := k.shared.Pipeline.Store.Collect(ctx, k.object(obj))
	if err != nil {
		return fmt.Errorf("collect superseded artifacts of %s: %w", k.object(obj), err)
	}
	if len(removed) > 0 {
		k.shared.Events.Emit(event.GarbageCollected(event.About(obj, sourcev1.GroupVersion.WithKind(k.name)), len(removed)))
	}
	return nil
}

// Finalize implements kernel.Kind.
func (k *kind[O]) Finalize(ctx context.Context, obj O) error {
	return k.shared.Pipeline.Store.Delete(ctx, k.object(obj))
}

func (k *kind[O]) object(obj O) storage.Object {
	return storage.Object{Kind: k.dir, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
