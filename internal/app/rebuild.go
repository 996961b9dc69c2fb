package app

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/storage"
)

// rebuildQueue tells about stored artifacts that turned out damaged, and wakes their objects.
type rebuildQueue struct {
	wake    chan ctrlevent.GenericEvent
	reader  client.Reader
	events  kernel.Emitter
	log     logr.Logger
	metrics *metrics
}

func newRebuildQueue(reader client.Reader, events kernel.Emitter, log logr.Logger, m *metrics) *rebuildQueue {
	return &rebuildQueue{wake: make(chan ctrlevent.GenericEvent, 1024), reader: reader, events: events, log: log, metrics: m}
}

// damaged never blocks: an object that finds no room here notices at its next interval.
func (q *rebuildQueue) damaged(object storage.Object, cause error) {
	q.metrics.damaged.Inc()
	q.log.Error(cause, "stored artifact is damaged; it is not served any more and made again", "object", object.String())
	obj := &sourcev1.GitRepository{}
	obj.SetNamespace(object.Namespace)
	obj.SetName(object.Name)
	select {
	case q.wake <- ctrlevent.GenericEvent{Object: obj}:
	default:
	}
	found := &sourcev1.GitRepository{}
	if err := q.reader.Get(context.Background(), client.ObjectKeyFromObject(obj), found); err != nil {
		q.log.V(1).Info("no event: the object is not there", "object", object.String(), "cause", err.Error())
		return
	}
	revision, digest := "", ""
	if artifact := found.Status.Artifact; artifact != nil {
		revision, digest = artifact.Revision, artifact.Digest
	}
	about := event.About(found, sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind))
	q.events.Emit(event.ArtifactVerificationFailed(about, cause, revision, digest))
}
