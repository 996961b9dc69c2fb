package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
)

// answering is a receiver on loopback. It passes on every event it is posted; the answer decides what it says.
func answering(t *testing.T, answer http.HandlerFunc) (string, <-chan eventv1.Event) {
	t.Helper()
	posts := make(chan eventv1.Event, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e eventv1.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Errorf("decode post: %v", err)
		}
		if got := r.Header.Get("Content-Type"); got != "application/json" || r.Method != http.MethodPost {
			t.Errorf("got a %s of %q", r.Method, got)
		}
		posts <- e
		r.Header.Set("name", e.InvolvedObject.Name)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, posts
}

func status(codes ...int) http.HandlerFunc {
	answers := make(chan int, len(codes))
	for _, code := range codes {
		answers <- code
	}
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(<-answers) }
}

// running starts a sink; stop ends it and waits until it has.
func running(t *testing.T, o Options) (s *Sink, stop func()) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var stopped bool
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// lines is a logger whose lines arrive in a channel.
func lines() (logr.Logger, <-chan string) {
	out := make(chan string, 100)
	return funcr.New(func(_, args string) { out <- args }, funcr.Options{}), out
}

func expect(t *testing.T, s *Sink, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(s, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestPostIsTheFluxPayload(t *testing.T) {
	t.Parallel()
	address, posts := answering(t, status(http.StatusAccepted))
	clk := clocktesting.NewFakeClock(noon)
	s, _ := running(t, Options{EventsAddr: address, Instance: "pod-0", Clock: clk})

	s.Emit(Failed(subject("podinfo"), "GitOperationFailed", errors.New("cut\x1b off"), "main@sha1:aa"))

	want := eventv1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "apps", Name: "podinfo",
		},
		Severity: "error", Timestamp: metav1.NewTime(noon), Message: `cut\x1b off`, Reason: "GitOperationFailed",
		Metadata:            map[string]string{"source.toolkit.fluxcd.io/revision": "main@sha1:aa"},
		ReportingController: "source-controller", ReportingInstance: "pod-0",
	}
	if diff := cmp.Diff(want, <-posts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPostsAboutOurKindsAreSluices(t *testing.T) {
	t.Parallel()
	address, posts := answering(t, status(http.StatusAccepted))
	s, _ := running(t, Options{EventsAddr: address})
	installation := &metav1.ObjectMeta{Namespace: "apps", Name: "redis"}
	s.Emit(Happened(About(installation, schema.GroupVersionKind{Group: "modules.sluice.dev", Version: "v1alpha1", Kind: "ModuleInstallation"}), "Installed", "it is there", ""))
	if got := (<-posts).ReportingController; got != "sluice" {
		t.Errorf("reported by %q", got)
	}
}

func TestTraceIsForKubernetesAlone(t *testing.T) {
	t.Parallel()
	address, posts := answering(t, status(http.StatusOK, http.StatusOK))
	recorder, recorded := kubernetes(t)
	s, stop := running(t, Options{EventsAddr: address, Recorder: recorder})

	s.Emit(GarbageCollected(subject("a"), 2))
	s.Emit(Stored(subject("b"), "NewArtifact", Artifact{Revision: "r", Digest: "d"}, "stored"))

	if got := <-recorded; got.Type != "Normal" || got.Reason != "GarbageCollectionSucceeded" {
		t.Errorf("the trace reached Kubernetes as %s %s", got.Type, got.Reason)
	}
	stop()
	if got := <-posts; got.InvolvedObject.Name != "b" || got.Severity != "info" {
		t.Errorf("the first post is a %s about %q", got.Severity, got.InvolvedObject.Name)
	}
}

// kubernetes is client-go's recorder, with its events as they would be sent to the API server.
func kubernetes(t *testing.T) (record.EventRecorder, <-chan *corev1.Event) {
	t.Helper()
	broadcaster := record.NewBroadcaster()
	t.Cleanup(broadcaster.Shutdown)
	out := make(chan *corev1.Event, 100)
	broadcaster.StartEventWatcher(func(e *corev1.Event) { out <- e })
	return broadcaster.NewRecorder(kruntime.NewScheme(), corev1.EventSource{Component: "source-controller"}), out
}

func TestKubernetesEvent(t *testing.T) {
	t.Parallel()
	recorder, recorded := kubernetes(t)
	s, _ := running(t, Options{Recorder: recorder})

	s.Emit(Failed(subject("podinfo"), "GitOperationFailed", errors.New("100% "+strings.Repeat("ü", 2000)), "r1"))

	got := <-recorded
	if len(got.Message) > 1024 || len(got.Message) < 1020 || !strings.HasPrefix(got.Message, "100% üü") {
		t.Errorf("message of %d bytes: %.20q…", len(got.Message), got.Message)
	}
	want := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "apps",
			Annotations: map[string]string{"source.toolkit.fluxcd.io/revision": "r1"},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "apps", Name: "podinfo",
		},
		Type: "Warning", Reason: "GitOperationFailed", Message: got.Message,
	}
	got = &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: got.Namespace, Annotations: got.Annotations},
		InvolvedObject: got.InvolvedObject, Type: got.Type, Reason: got.Reason, Message: got.Message,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReceiverAnswers(t *testing.T) {
	t.Parallel()

	elsewhere, strays := answering(t, status(http.StatusOK))
	cases := map[string]struct {
		reason   string
		answer   http.HandlerFunc
		requests int
		metrics  string
		logged   string
	}{
		"accepted": {
			reason:   "An accepted event is posted once.",
			answer:   status(http.StatusAccepted),
			requests: 1,
			metrics:  posted("accepted", 0),
		},
		"duplicate": {
			reason:   "429 means that the receiver knows the event; asking again is pointless.",
			answer:   status(http.StatusTooManyRequests),
			requests: 1,
			metrics:  posted("duplicate", 0),
		},
		"server error that passes": {
			reason:   "A server's error is tried again.",
			answer:   status(http.StatusInternalServerError, http.StatusBadGateway, http.StatusOK),
			requests: 3,
			metrics:  posted("accepted", 0),
		},
		"server error that stays": {
			reason:   "The attempts are bounded.",
			answer:   status(500, 500, 500),
			requests: 3,
			metrics:  posted("", 1),
			logged:   "the receiver answered with status 500",
		},
		"refused": {
			reason:   "What the receiver refuses it refuses again.",
			answer:   status(http.StatusBadRequest),
			requests: 1,
			metrics:  posted("", 1),
			logged:   "the receiver answered with status 400",
		},
		"redirect": {
			reason: "An event goes nowhere else.",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere)
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
			requests: 1,
			metrics:  posted("", 1),
			logged:   "the receiver answered with status 307",
		},
		"cut": {
			reason:   "A connection that breaks is tried again, and the address is not logged.",
			answer:   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			requests: 3,
			metrics:  posted("", 1),
			logged:   "EOF",
		},
		"long pause asked for": {
			reason: "A receiver does not choose how long it holds a worker.",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "86400")
				w.WriteHeader(http.StatusServiceUnavailable)
			},
			requests: 3,
			metrics:  posted("", 1),
			logged:   "the receiver answered with status 503",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, posts := answering(t, tc.answer)
			logger, logged := lines()
			s, stop := running(t, Options{
				EventsAddr: address + "/?token=canary", Attempts: 3, RetryWait: time.Microsecond, Logger: logger,
			})
			s.Emit(Stored(subject("podinfo"), "NewArtifact", Artifact{Revision: "r", Digest: "d"}, "stored"))
			stop()

			if got := len(posts); got != tc.requests {
				t.Errorf("%s requests: want %d, got %d", tc.reason, tc.requests, got)
			}
			expect(t, s, tc.metrics, "sluice_events_posted_total", "sluice_events_post_errors_total")
			line := ""
			if len(logged) > 0 {
				line = <-logged
			}
			if !strings.Contains(line, tc.logged) || (tc.logged == "") != (line == "") || strings.Contains(line, "canary") {
				t.Errorf("%s logged %q, want %q", tc.reason, line, tc.logged)
			}
		})
	}
	t.Cleanup(func() {
		if len(strays) > 0 {
			t.Error("an event followed a redirect")
		}
	})
}

// posted is the exposition after one event was posted with this answer, or given up.
func posted(answer string, failures int) string {
	text := fmt.Sprintf(`# HELP sluice_events_post_errors_total Events given up because the receiver failed or refused them.
# TYPE sluice_events_post_errors_total counter
sluice_events_post_errors_total %d
`, failures)
	if answer != "" {
		text += fmt.Sprintf(`# HELP sluice_events_posted_total Events that the receiver took, by its answer: accepted, or duplicate of one it had.
# TYPE sluice_events_posted_total counter
sluice_events_posted_total{answer=%q} 1
`, answer)
	}
	return text
}

// TestHangingPostHoldsUpNobodyElse: the receiver hangs on the events of one object and takes all others.
func TestHangingPostHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	address, posts := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("name") == "hangs" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	clk := clocktesting.NewFakeClock(noon)
	logger, logged := lines()
	recorder, recorded := kubernetes(t)
	s, _ := running(t, Options{
		EventsAddr: address, Recorder: recorder, Clock: clk, Logger: logger, AttemptTimeout: time.Hour,
	})

	s.Emit(warned(subject("hangs"), "R", "m"))
	if got := <-posts; got.InvolvedObject.Name != "hangs" {
		t.Fatalf("the first post is about %q", got.InvolvedObject.Name)
	}
	for i := range 20 {
		s.Emit(warned(subject(fmt.Sprintf("fine-%d", i)), "R", "m"))
	}
	for range 20 {
		<-posts
	}
	for range 21 {
		<-recorded
	}
	if len(logged) > 0 {
		t.Fatalf("given up before its time: %s", <-logged)
	}

	// A post ends a moment after its answer was sent; then only the one that hangs is left on the clock.
	for clk.Waiters() > 1 {
		runtime.Gosched()
	}
	clk.Step(30 * time.Second)
	if got := <-logged; !strings.Contains(got, "did not take the event in time: 30s") || !strings.Contains(got, "hangs") {
		t.Errorf("logged %q", got)
	}
	close(release)
	s.Emit(warned(subject("hangs"), "R", "another try"))
	if got := <-posts; got.Message != "another try" {
		t.Errorf("after the post was given up, the object's next event is %q", got.Message)
	}
}

// stuck is a recorder that blocks until it is released.
type stuck struct{ entered, release chan struct{} }

func (s stuck) AnnotatedEventf(kruntime.Object, map[string]string, string, string, string, ...any) {
	s.entered <- struct{}{}
	<-s.release
}

func TestEmitNeverBlocks(t *testing.T) {
	t.Parallel()
	recorder := stuck{entered: make(chan struct{}, 10), release: make(chan struct{})}
	clk := clocktesting.NewFakeClock(noon)
	logger, logged := lines()
	s, err := New(Options{Recorder: recorder, QueueSize: 4, Clock: clk, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	s.Emit(warned(subject("first"), "R", "m"))
	<-recorder.entered
	for i := range 10 {
		s.Emit(warned(subject(fmt.Sprintf("more-%d", i)), "R", "m"))
		s.Emit(warned(subject(fmt.Sprintf("more-%d", i)), "R", "m"))
	}
	expect(t, s, `# HELP sluice_events_dropped_total Events that never reached the reader: its queue was full, or the program stopped.
# TYPE sluice_events_dropped_total counter
sluice_events_dropped_total{reader="kubernetes"} 6
# HELP sluice_events_emitted_total Events told by reconciles.
# TYPE sluice_events_emitted_total counter
sluice_events_emitted_total{type="Warning"} 21
# HELP sluice_events_merged_total Events that were the same as one still waiting for the reader.
# TYPE sluice_events_merged_total counter
sluice_events_merged_total{reader="kubernetes"} 10
# HELP sluice_events_queued Events waiting for the reader.
# TYPE sluice_events_queued gauge
sluice_events_queued{reader="kubernetes"} 4
`, "sluice_events_dropped_total", "sluice_events_emitted_total", "sluice_events_merged_total", "sluice_events_queued")
	if len(logged) != 1 {
		t.Errorf("an overflow is logged once, got %d lines", len(logged))
	}

	// Stopping waits for the drain timeout by the clock, and no longer, although the recorder never returns.
	cancel()
	for !clk.HasWaiters() {
		select {
		case err := <-ended:
			t.Fatalf("stopped before the drain timeout: %v", err)
		default:
		}
	}
	clk.Step(5 * time.Second)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.Emit(warned(subject("late"), "R", "m"))
	if got := testutil.ToFloat64(s.dropped.WithLabelValues("kubernetes")); got != 11 {
		t.Errorf("dropped: want 6, then 4 left at the end and 1 after it, got %v", got)
	}
	close(recorder.release)
}

func TestStopDeliversWhatIsQueued(t *testing.T) {
	t.Parallel()
	address, posts := answering(t, func(http.ResponseWriter, *http.Request) {})
	s, err := New(Options{EventsAddr: address, DrainTimeout: time.Hour, AttemptTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		s.Emit(warned(subject(fmt.Sprintf("o-%d", i)), "R", "m"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := len(posts); got != 50 {
		t.Errorf("posted before the end: want 50, got %d", got)
	}
}

func TestStopBreaksOffHangingPosts(t *testing.T) {
	t.Parallel()
	address, posts := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	clk := clocktesting.NewFakeClock(noon)
	logger, logged := lines()
	s, stop := running(t, Options{
		EventsAddr: address, Clock: clk, Logger: logger, DrainTimeout: time.Second, AttemptTimeout: time.Hour,
	})
	s.Emit(warned(subject("hangs"), "R", "m"))
	<-posts
	s.Emit(warned(subject("hangs"), "R", "behind"))

	go func() {
		for clk.Waiters() < 2 {
			select {
			case <-t.Context().Done():
				return
			default:
			}
		}
		clk.Step(time.Second)
	}()
	stop()
	if got := <-logged; !strings.Contains(got, "context canceled") {
		t.Errorf("logged %q", got)
	}
	if got := testutil.ToFloat64(s.dropped.WithLabelValues("receiver")); got != 1 {
		t.Errorf("dropped: want 1, got %v", got)
	}
}

func TestBadEventsAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"notification-controller", "ftp://host/", "http://", "http://me:canary@ho st/"} {
		_, err := New(Options{EventsAddr: address})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("address %q: got error %v", address, err)
		}
	}
}

func TestSinkIsACollector(t *testing.T) {
	t.Parallel()
	recorder, _ := kubernetes(t)
	s, err := New(Options{Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	if err := prometheus.NewPedanticRegistry().Register(s); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(s); err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", problems, err)
	}
}
