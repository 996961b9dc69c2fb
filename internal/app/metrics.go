package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	own      *prometheus.Registry
	scheme   *runtime.Scheme
	stages   *prometheus.HistogramVec
	runs     *prometheus.CounterVec
	artifact *prometheus.GaugeVec
	received *prometheus.CounterVec
	commits  *prometheus.CounterVec
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

	changes  *prometheus.CounterVec
	forges   *prometheus.CounterVec
	packages *prometheus.CounterVec
	compiled prometheus.Counter
	mistakes prometheus.Gauge
}

func newMetrics(scheme *runtime.Scheme) *metrics {
	own := prometheus.NewRegistry()
	auto := promauto.With(own)
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	durations := func(name, help string, labels ...string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBucketsRange(0.001, 300, 12)
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &metrics{
		flux: fluxmetrics.NewRecorder(), own: own, scheme: scheme,

		stages: durations("sluice_source_stage_duration_seconds",
			"Time spent in one stage of a source reconcile: resolve is the probe of upstream, archive includes storing.", "kind", "stage"),
		runs: counters("sluice_source_runs_total",
			"Successful source reconciles by result: unchanged ones found everything in place.", "kind", "result"),
		artifact: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_artifact_size_bytes", Help: "Size of the current artifact of an object.",
		}, []string{"kind", "namespace", "name"}),
		commits:  counters("sluice_git_fetches_total", "Commits from Git servers, by how they were had: whole, incremental or cached.", "how"),
		received: counters("sluice_upstream_received_bytes_total", "Bytes received from upstreams.", "protocol"),
		stored:   gauge("sluice_storage_bytes", "Bytes of all stored artifacts; shared ones count once."),
		files:    gauge("sluice_storage_artifacts", "Number of distinct stored artifacts."),
		damaged:  counter("sluice_storage_damaged_total", "Stored artifacts that no longer matched their digest and were dropped."),
		requests: counters("sluice_artifact_requests_total", "Requests to the artifact server.", "method", "code"),
		sent:     counter("sluice_artifact_sent_bytes_total", "Bytes of artifacts sent to consumers."),
		serving: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_artifact_request_duration_seconds", Help: "Time to answer a request to the artifact server.",
			Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 10),
		}),

		actions: durations("sluice_installation_action_duration_seconds",
			"Time spent in one action for a module installation, such as apply, heal or prune, by result.", "action", "result"),
		renders:   counters("sluice_installation_renders_total", "Releases that were rendered, rather than known from before.", "result"),
		downloads: counters("sluice_artifact_downloads_total", "Artifacts that installations asked for: cached ones were there already.", "result"),
		fetched:   counter("sluice_artifact_fetched_bytes_total", "Bytes of artifacts downloaded for installations."),
		cached:    gauge("sluice_artifact_cache_bytes", "Bytes of unpacked artifacts kept for installations."),
		calls:     counters("sluice_member_calls_total", "Requests to the API server for the objects of installations.", "verb"),

		changes:  counters("sluice_package_changes_total", "Changes of packages that repositories were asked for, by kind and result.", "change", "result"),
		forges:   counters("sluice_package_forge_requests_total", "Requests to the APIs of forges, by provider and result: unchanged ones had no body, limited ones were too many.", "provider", "result"),
		packages: counters("sluice_package_renders_total", "Packages that were rendered, or known from before.", "result"),
		compiled: counter("sluice_package_sets_compiled_total", "Sets whose expressions were compiled, rather than known from before."),
		mistakes: gauge("sluice_package_target_fields_mistakes", "Entries of the allow list of target fields that do not count."),
	}
}

// register adds all metrics to the registry, and those of the other collectors.
func (m *metrics) register(registry prometheus.Registerer, others ...prometheus.Collector) error {
	for _, collector := range slices.Concat(m.flux.Collectors(), others, []prometheus.Collector{m.own}) {
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
