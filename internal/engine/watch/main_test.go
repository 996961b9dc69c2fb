package watch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

const (
	label   = cluster.PartOf
	manager = "sluice-0123456789abcdef"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// wire sees every request, and can break some.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	lists   int
	watches int
	streams map[*stream]struct{}
	expire  bool
	refuse  int
	// broken is how many lists are answered with an internal error.
	broken   int
	requests []string
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	wire *wire
}

func (s *stream) Close() error {
	s.wire.mu.Lock()
	delete(s.wire.streams, s)
	s.wire.mu.Unlock()
	return s.ReadCloser.Close()
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	watching := request.URL.Query().Get("watch") != ""
	w.mu.Lock()
	w.requests = append(w.requests, request.URL.Path)
	refuse := w.refuse > 0
	expire := w.expire && watching && !refuse
	broken := false
	switch {
	case watching:
		w.watches++
		w.expire = w.expire && !expire
	case request.URL.Query().Has("labelSelector"), request.URL.Query().Has("fieldSelector"):
		w.lists++
		broken = w.broken > 0
		w.broken -= min(w.broken, 1)
	}
	if refuse {
		w.refuse--
	}
	w.mu.Unlock()
	if refuse {
		return nil, io.ErrUnexpectedEOF
	}
	if expire {
		return failing(request, http.StatusOK, `{"type":"ERROR","object":%s}`, metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
	}
	if broken {
		return failing(request, http.StatusInternalServerError, "%s", metav1.Status{
			Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
		})
	}
	response, err := w.next.RoundTrip(request)
	if err == nil && watching && response.StatusCode == http.StatusOK {
		body := &stream{response.Body, w}
		response.Body = body
		w.mu.Lock()
		w.streams[body] = struct{}{}
		w.mu.Unlock()
	}
	return response, err
}

// failing is an answer with the status.
func failing(request *http.Request, code int, format string, status metav1.Status) (*http.Response, error) {
	status.APIVersion, status.Kind, status.Status = "v1", "Status", metav1.StatusFailure
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(fmt.Appendf(nil, format, raw))),
	}, nil
}

// cut ends every watch as a lost connection does.
func (w *wire) cut() {
	w.mu.Lock()
	streams := make([]*stream, 0, len(w.streams))
	for one := range w.streams {
		streams = append(streams, one)
	}
	w.mu.Unlock()
	for _, one := range streams {
		_ = one.Close()
	}
}

func (w *wire) counts() (lists, watches, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists, w.watches, len(w.streams)
}

// heard is a list of what was notified.
type heard struct {
	mu     sync.Mutex
	events []string
}

func name(event watch.Event) string {
	return map[watch.Event]string{
		watch.Added: "added", watch.Modified: "modified", watch.Touched: "touched", watch.Deleted: "deleted",
		watch.Synced: "synced", watch.Lost: "lost",
	}[event]
}

func (h *heard) notify(owner string, ref cluster.Ref, event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", owner, name(event), ref.GVK.Kind, ref.Name)))
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := slices.Clone(h.events)
	h.events = nil
	return events
}

// until waits until exactly the events were heard, in any order, and forgets them.
func (h *heard) until(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	var all []string
	testenv.Eventually(t, fmt.Sprintf("hear of %q", want), func(context.Context) (bool, string) {
		all = append(all, h.take()...)
		slices.Sort(all)
		return slices.Equal(all, want), fmt.Sprintf("%q", all)
	})
}

// newWatcher makes a Watcher of the real API server through a wire.
func newWatcher(tb testing.TB, change func(*watch.Options)) (*watch.Watcher, *wire, *heard) {
	tb.Helper()
	tap := &wire{streams: map[*stream]struct{}{}}
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		tap.next = next
		return tap
	})
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		tb.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(env.Config))
	if err != nil {
		tb.Fatal(err)
	}
	ears := &heard{}
	options := watch.Options{
		Connect: func(identity cluster.Identity, kind schema.GroupVersionKind) (metadata.Interface, *meta.RESTMapping, error) {
			as := *shared
			if identity.ServiceAccount != "" {
				as.Transport = impersonating{shared.Transport, identity}
			}
			reader, err := metadata.NewForConfigAndClient(config, &as)
			if err != nil {
				return nil, nil, err
			}
			mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)).RESTMapping(kind.GroupKind(), kind.Version)
			return reader, mapping, err
		},
		Notify: ears.notify,
	}
	if change != nil {
		change(&options)
	}
	watcher, err := watch.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(watcher.Close)
	return watcher, tap, ears
}

// impersonating asks as a ServiceAccount.
type impersonating struct {
	next http.RoundTripper
	as   cluster.Identity
}

func (i impersonating) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Impersonate-User", i.as.String())
	request.Header.Set("Impersonate-Group", "system:serviceaccounts")
	return i.next.RoundTrip(request)
}

// member is an object of an owner.
func member(gvk schema.GroupVersionKind, namespace, name, owner string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, fields)
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(name)
	if owner != "" {
		object.SetLabels(map[string]string{label: owner})
	}
	return object
}

func apply(tb testing.TB, object *unstructured.Unstructured, by string) *unstructured.Unstructured {
	tb.Helper()
	applied := object.DeepCopy()
	err := env.Client.Apply(tb.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(by), client.ForceOwnership)
	if err != nil {
		tb.Fatal(err)
	}
	return applied
}

func data(value string) map[string]any {
	return map[string]any{"data": map[string]any{"key": value}}
}

func ref(gvk schema.GroupVersionKind, namespace, name string) cluster.Ref {
	return cluster.Ref{GVK: gvk, Namespace: namespace, Name: name}
}

// known waits until the watcher knows the object's subject.
func known(tb testing.TB, watcher *watch.Watcher, owner string, ref cluster.Ref) *watch.Meta {
	tb.Helper()
	for deadline := time.After(4 * time.Minute); ; {
		if found, known := watcher.State(owner, ref); known {
			return found
		}
		select {
		case <-deadline:
			tb.Fatalf("%s is not known to %q: %v", ref.Name, owner, watcher.Problems(owner))
		case <-time.Tick(5 * time.Millisecond):
		}
	}
}
