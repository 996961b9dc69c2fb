package app

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/storage"
)

// maxWakes is how many objects of a kind may wait to be woken.
const maxWakes = 1024

// rebuildQueue tells about stored artifacts that turned out damaged, and wakes their objects.
type rebuildQueue struct {
	wake    map[string]chan ctrlevent.GenericEvent // by the kind's folder
	reader  client.Reader
	events  kernel.Emitter
	log     logr.Logger
	metrics *metrics
}

func newRebuildQueue(reader client.Reader, events kernel.Emitter, log logr.Logger, m *metrics) *rebuildQueue {
	q := &rebuildQueue{wake: map[string]chan ctrlevent.GenericEvent{}, reader: reader, events: events, log: log, metrics: m}
	for _, kind := range served() {
		q.wake[kind.Dir] = make(chan ctrlevent.GenericEvent, maxWakes)
	}
	return q
}

// damaged never blocks: an object that finds no room here notices at its next interval.
func (q *rebuildQueue) damaged(object storage.Object, cause error) {
	q.metrics.damaged.Inc()
	q.log.Error(cause, "stored artifact is damaged; it is not served any more and made again", "object", object.String())
	kind, known := kindOf(object)
	if !known {
		return
	}
	obj := kind.New()
	obj.SetNamespace(object.Namespace)
	obj.SetName(object.Name)
	select {
	case q.wake[kind.Dir] <- ctrlevent.GenericEvent{Object: obj}:
	default:
	}
	found := kind.New()
	if err := q.reader.Get(context.Background(), client.ObjectKeyFromObject(obj), found); err != nil {
		q.log.V(1).Info("no event: the object is not there", "object", object.String(), "cause", err.Error())
		return
	}
	var lost event.Artifact
	if artifact := found.GetArtifact(); artifact != nil {
		lost = event.Artifact{Revision: artifact.Revision, Digest: artifact.Digest}
	}
	about := event.About(found, kind.Group.WithKind(kind.Name))
	q.events.Emit(event.ArtifactVerificationFailed(about, lost, cause))
}
