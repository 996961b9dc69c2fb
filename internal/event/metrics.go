package event

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The readers of events, as the label "reader" names them.
const (
	readerKubernetes = "kubernetes"
	readerReceiver   = "receiver"
)

// counters count what became of events.
type counters struct {
	emitted    *prometheus.CounterVec
	merged     *prometheus.CounterVec
	dropped    *prometheus.CounterVec
	posted     *prometheus.CounterVec
	postErrors prometheus.Counter
	queued     *prometheus.Desc
}

func newCounters() counters {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return counters{
		emitted: vector("sluice_events_emitted_total", "Events told by reconciles.", "type"),
		merged: vector("sluice_events_merged_total",
			"Events that were the same as one still waiting for the reader.", "reader"),
		dropped: vector("sluice_events_dropped_total",
			"Events that never reached the reader: its queue was full, or the program stopped.", "reader"),
		posted: vector("sluice_events_posted_total",
			"Events that the receiver took, by its answer: accepted, or duplicate of one it had.", "answer"),
		postErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_events_post_errors_total",
			Help: "Events given up because the receiver failed or refused them.",
		}),
		queued: prometheus.NewDesc("sluice_events_queued", "Events waiting for the reader.", []string{"reader"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *Sink) Describe(out chan<- *prometheus.Desc) {
	for _, c := range s.counters.collectors() {
		c.Describe(out)
	}
	out <- s.counters.queued
}

// Collect implements prometheus.Collector.
func (s *Sink) Collect(out chan<- prometheus.Metric) {
	for _, c := range s.counters.collectors() {
		c.Collect(out)
	}
	for reader, q := range s.queues {
		out <- prometheus.MustNewConstMetric(
			s.counters.queued, prometheus.GaugeValue, float64(q.length()), reader)
	}
}

func (c counters) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.emitted, c.merged, c.dropped, c.posted, c.postErrors}
}
