package app

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/storage"
)

// rebuildQueue wakes the objects whose stored artifact turned out damaged.
type rebuildQueue struct {
	events  chan event.GenericEvent
	log     logr.Logger
	metrics *metrics
}

func newRebuildQueue(log logr.Logger, m *metrics) *rebuildQueue {
	return &rebuildQueue{events: make(chan event.GenericEvent, 1024), log: log, metrics: m}
}

// damaged never blocks: an object that finds no room here notices at its next interval.
func (q *rebuildQueue) damaged(object storage.Object, err error) {
	q.metrics.damaged.Inc()
	q.log.Error(err, "stored artifact is damaged; it is not served any more and made again", "object", object.String())
	obj := &sourcev1.GitRepository{}
	obj.SetNamespace(object.Namespace)
	obj.SetName(object.Name)
	select {
	case q.events <- event.GenericEvent{Object: obj}:
	default:
	}
}
