package event

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The readers of events, as the label "reader" names them.
const (
	readerKubernetes = "kubernetes"
	readerReceiver   = "receiver"
)

// counters count what became of events.
type counters struct {
	registry   *prometheus.Registry
	emitted    *prometheus.CounterVec
	merged     *prometheus.CounterVec
	dropped    *prometheus.CounterVec
	posted     *prometheus.CounterVec
	postErrors prometheus.Counter
}

func newCounters() counters {
	registry := prometheus.NewRegistry()
	vector := func(name, help string, label string) *prometheus.CounterVec {
		return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	return counters{
		registry: registry,
		emitted:  vector("sluice_events_emitted_total", "Events told by reconciles.", "type"),
		merged:   vector("sluice_events_merged_total", "Events that were the same as one still waiting for the reader.", "reader"),
		dropped: vector("sluice_events_dropped_total",
			"Events that never reached the reader: its queue was full, or the program stopped.", "reader"),
		posted: vector("sluice_events_posted_total",
			"Events that the receiver took, by its answer: accepted, or duplicate of one it had.", "answer"),
		postErrors: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "sluice_events_post_errors_total", Help: "Events given up because the receiver failed or refused them.",
		}),
	}
}

// watch measures what waits for the reader.
func (c counters) watch(reader string, q *queue) {
	promauto.With(c.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_events_queued", Help: "Events waiting for the reader.", ConstLabels: prometheus.Labels{"reader": reader},
	}, func() float64 { return float64(q.length()) })
}
