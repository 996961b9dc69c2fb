package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// receiver takes events as Flux's notification-controller does.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events []eventv1.Event
	wrong  []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var event eventv1.Event
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil || request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/json" {
			r.wrong = append(r.wrong, fmt.Sprint(request.Method, request.Header, err))
		}
		r.events = append(r.events, event)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) received() ([]eventv1.Event, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]eventv1.Event(nil), r.events...), r.wrong
}

func TestTheReceiverGetsFluxEvents(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	s := newRunning(t, "--events-addr="+r.URL+"/")
	repository := s.upstream.Repository("app")
	repository.Commit("main", "Zero", oneFile("replicas: 0\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	server.Always(upstream.Status(http.StatusForbidden))
	s.create("app", server.URL("app"))
	s.edit("app", func(obj *sourcev1.GitRepository) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, eventv1.Group+"/team", "web")
	})
	s.failing("app", fetchFailed("403 Forbidden"))
	server.Heal()
	commit := repository.Commit("main", "Scale to one\n\nThe body is not told.", oneFile("replicas: 1\n"))
	s.request("app")
	obj := s.ready("app", mainAt(commit))

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	about := corev1.ObjectReference{
		Kind: "GitRepository", APIVersion: "source.toolkit.fluxcd.io/v1", Namespace: s.namespace, Name: "app", UID: obj.UID,
	}
	want := map[string]eventv1.Event{
		"GitOperationFailed": {
			InvolvedObject: about, Severity: eventv1.EventSeverityError, Reason: "GitOperationFailed",
			Message: "list refs of", ReportingController: "source-controller", ReportingInstance: host,
			Metadata: map[string]string{eventv1.Group + "/team": "web"},
		},
		"NewArtifact": {
			InvolvedObject: about, Severity: eventv1.EventSeverityInfo, Reason: "NewArtifact",
			Message: "stored artifact for commit 'Scale to one'", ReportingController: "source-controller", ReportingInstance: host,
			Metadata: map[string]string{
				eventv1.Group + "/team":             "web",
				"source.toolkit.fluxcd.io/revision": mainAt(commit),
				"source.toolkit.fluxcd.io/digest":   obj.Status.Artifact.Digest,
			},
		},
	}
	got := map[string]eventv1.Event{}
	s.eventually("the failure and the artifact are told", func(context.Context) (bool, string) {
		events, wrong := r.received()
		for _, event := range events {
			if event.Reason == "NewArtifact" && event.Metadata["source.toolkit.fluxcd.io/revision"] != mainAt(commit) {
				continue // The commit before it, should it have been seen.
			}
			got[event.Reason] = event
		}
		return len(wrong) == 0 && got["NewArtifact"].Reason != "" && got["GitOperationFailed"].Reason != "", fmt.Sprint(wrong, asJSON(events))
	})
	for reason, event := range got {
		if event.Timestamp.IsZero() || event.InvolvedObject.ResourceVersion == "" {
			t.Errorf("%s lacks its time or its object's version: %s", reason, asJSON(event))
		}
		event.Timestamp, event.InvolvedObject.ResourceVersion = metav1.Time{}, ""
		if reason == "GitOperationFailed" {
			if len(event.Message) < len("list refs of") {
				t.Errorf("the message is %q", event.Message)
			}
			event.Message = event.Message[:len("list refs of")]
		}
		if diff := cmp.Diff(want[reason], event); diff != "" {
			t.Errorf("event %s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestAReceiverThatHangsDelaysNothing(t *testing.T) {
	t.Parallel()
	var posted atomic.Int64
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		// Only behind the body does the server see that the client has gone.
		_, _ = io.Copy(io.Discard, request.Body)
		posted.Add(1)
		<-request.Context().Done()
	}))
	t.Cleanup(func() {
		hanging.CloseClientConnections()
		hanging.Close()
	})
	s := newRunning(t, "--events-addr="+hanging.URL, "--concurrent=1")
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "Commit 0", oneFile("0"))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	s.ready("app", mainAt(commit))
	s.eventually("an event is on its way", func(context.Context) (bool, string) { return posted.Load() > 0, "nothing posted" })
	// An event is posted several times, for 5 s each, before it is given up. Work that waited for that would overtake no
	// event; work at its own pace overtakes each, unless the machine is so busy that now and then it is the slower one.
	overtaken := 0
	for i := range 30 {
		before := posted.Load()
		commit = repository.Commit("main", fmt.Sprintf("Commit %d", i+1), oneFile(fmt.Sprint(i+1)))
		s.request("app")
		s.ready("app", mainAt(commit))
		s.toldNewArtifact("app", mainAt(commit))
		if posted.Load() <= before+1 {
			overtaken++
		}
		if overtaken == 5 {
			break
		}
	}
	if overtaken < 5 {
		t.Errorf("of 30 changes, %d were done before their posts had ended", overtaken)
	}
	s.stop()
}
