package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// metrics are what the process measures of itself, beside what controller-runtime does. docs/operations.md lists them.
type metrics struct {
	flux     *fluxmetrics.Recorder
	scheme   *runtime.Scheme
	stages   *prometheus.HistogramVec
	runs     *prometheus.CounterVec
	artifact *prometheus.GaugeVec
	received *prometheus.CounterVec
	stored   prometheus.Gauge
	files    prometheus.Gauge
	damaged  prometheus.Counter
	requests *prometheus.CounterVec
	sent     prometheus.Counter
	serving  prometheus.Histogram

	actions   *prometheus.HistogramVec
	renders   *prometheus.CounterVec
	downloads *prometheus.CounterVec
	fetched   prometheus.Counter
	cached    prometheus.Gauge
	calls     *prometheus.CounterVec
}

func newMetrics(scheme *runtime.Scheme) *metrics {
	return &metrics{
		flux:   fluxmetrics.NewRecorder(),
		scheme: scheme,
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sluice_source_stage_duration_seconds",
			Help:    "Time spent in one stage of a source reconcile: resolve is the probe of upstream, archive includes storing.",
			Buckets: prometheus.ExponentialBucketsRange(0.001, 300, 12),
		}, []string{"kind", "stage"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_source_runs_total",
			Help: "Successful source reconciles by result: unchanged ones found everything in place.",
		}, []string{"kind", "result"}),
		artifact: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_artifact_size_bytes",
			Help: "Size of the current artifact of an object.",
		}, []string{"kind", "namespace", "name"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_upstream_received_bytes_total",
			Help: "Bytes received from upstreams.",
		}, []string{"protocol"}),
		stored:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_storage_bytes", Help: "Bytes of all stored artifacts; shared ones count once."}),
		files:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_storage_artifacts", Help: "Number of distinct stored artifacts."}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_storage_damaged_total", Help: "Stored artifacts that no longer matched their digest and were dropped."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_artifact_requests_total",
			Help: "Requests to the artifact server.",
		}, []string{"method", "code"}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_artifact_sent_bytes_total", Help: "Bytes of artifacts sent to consumers."}),
		serving: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sluice_artifact_request_duration_seconds",
			Help:    "Time to answer a request to the artifact server.",
			Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 10),
		}),
		actions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sluice_installation_action_duration_seconds",
			Help:    "Time spent in one action for a module installation, such as apply, heal or prune, by result.",
			Buckets: prometheus.ExponentialBucketsRange(0.001, 300, 12),
		}, []string{"action", "result"}),
		renders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_installation_renders_total", Help: "Releases that were rendered, rather than known from before.",
		}, []string{"result"}),
		downloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_artifact_downloads_total", Help: "Artifacts that installations asked for: cached ones were there already.",
		}, []string{"result"}),
		fetched: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_artifact_fetched_bytes_total", Help: "Bytes of artifacts downloaded for installations."}),
		cached:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_artifact_cache_bytes", Help: "Bytes of unpacked artifacts kept for installations."}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_member_calls_total", Help: "Requests to the API server for the objects of installations.",
		}, []string{"verb"}),
	}
}

// register adds all metrics to the registry, and those of the other collectors.
func (m *metrics) register(registry prometheus.Registerer, others ...prometheus.Collector) error {
	own := []prometheus.Collector{
		m.stages, m.runs, m.artifact, m.received, m.stored, m.files, m.damaged, m.requests, m.sent, m.serving,
		m.actions, m.renders, m.downloads, m.fetched, m.cached, m.calls,
	}
	for _, collector := range slices.Concat(own, m.flux.Collectors(), others) {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// Step implements source.Observer.
func (m *metrics) Step(kind string, stage source.Stage, took time.Duration) {
	m.stages.WithLabelValues(kind, string(stage)).Observe(took.Seconds())
}

// Stored implements source.Observer.
func (m *metrics) Stored(object storage.Object, size int64) {
	m.artifact.WithLabelValues(object.Kind, object.Namespace, object.Name).Set(float64(size))
}

// Run implements source.Observer.
func (m *metrics) Run(kind string, changed bool) {
	result := "unchanged"
	if changed {
		result = "changed"
	}
	m.runs.WithLabelValues(kind, result).Inc()
}

// Observe implements kernel.Durations.
func (m *metrics) Observe(obj client.Object, took time.Duration) {
	m.flux.RecordDuration(m.reference(obj), time.Now().Add(-took))
}

// Forget implements kernel.Durations.
func (m *metrics) Forget(obj client.Object) {
	m.flux.DeleteDuration(m.reference(obj))
	kind := strings.ToLower(m.reference(obj).Kind)
	m.artifact.DeletePartialMatch(prometheus.Labels{"kind": kind, "namespace": obj.GetNamespace(), "name": obj.GetName()})
}

func (m *metrics) reference(obj client.Object) corev1.ObjectReference {
	gvk, err := apiutil.GVKForObject(obj, m.scheme)
	if err != nil {
		// The type of every object that is reconciled is registered, or there would be no cache for it.
		gvk = obj.GetObjectKind().GroupVersionKind()
	}
	return corev1.ObjectReference{Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// served is told about every request to the artifact server.
func (m *metrics) served(method string, code int, bytes int64, took time.Duration) {
	m.requests.WithLabelValues(method, strconv.Itoa(code)).Inc()
	m.sent.Add(float64(bytes))
	m.serving.Observe(took.Seconds())
}
