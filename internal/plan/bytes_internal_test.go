package plan

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/engine/fetch"
)

// TestContentComesThroughTheServicesProxy: of the Service that the URL names, and of nothing else.
func TestContentComesThroughTheServicesProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const services = "/api/v1/namespaces/system/services/"
		switch r.URL.Path {
		case services + "source-controller/proxy/gitrepository/a/b/c.tar.gz", services + "source-controller:8080/proxy/a":
			_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding")+" "+r.URL.Path)
		case services + "other/proxy/a":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	core, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"http://source-controller.system.svc.cluster.local./gitrepository/a/b/c.tar.gz": "identity /api/v1/namespaces/system/services/source-controller/proxy/gitrepository/a/b/c.tar.gz",
		"http://source-controller.system:8080/a":                                        "identity /api/v1/namespaces/system/services/source-controller:8080/proxy/a",
	} {
		response, err := (&Content{Core: core}).Get(t.Context(), fetch.Artifact{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(response.Body); string(got) != want || err != nil || response.Body.Close() != nil {
			t.Errorf("%s: got %q, %v", url, got, err)
		}
	}
	for url, want := range map[string]error{
		"http://127.0.0.1:8080/a": fetch.ErrArtifact, "http://artifacts.example.com/a": fetch.ErrArtifact, "http://localhost/a": fetch.ErrArtifact,
		"http://[::1/a": fetch.ErrArtifact, "http://source-controller.system/missing": fetch.ErrUnavailable, "http://other.system/a": fetch.ErrUnavailable,
	} {
		s := &Content{Core: core}
		response, err := s.Get(t.Context(), fetch.Artifact{URL: url})
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, want) || apierrors.IsForbidden(s.Refused()) != (url == "http://other.system/a") {
			t.Errorf("%s: %v, %v", url, err, s.Refused())
		}
	}
}

// TestContentTrustsNobodyBehindTheProxy: whoever answers there may send the login nowhere else, and costs neither memory nor time.
func TestContentTrustsNobodyBehindTheProxy(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else was asked, with the login %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	var asked, sent atomic.Int64
	const flood = 64 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch path.Base(r.URL.Path) {
		case "redirects":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "waits":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusInternalServerError)
			for piece := make([]byte, 1<<20); sent.Load() < flood; sent.Add(1 << 20) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	core, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL, BearerToken: "login"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"redirects": fetch.ErrStatus, "waits": fetch.ErrUnavailable, "floods": fetch.ErrUnavailable} {
		asked.Store(0)
		response, err := (&Content{Core: core}).Get(t.Context(), fetch.Artifact{URL: "http://evil.tenant/" + name})
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, want) || asked.Load() != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, asked.Load())
		}
	}
	server.Close() // It waits for its answers.
	if sent.Load() == flood {
		t.Error("an answer that is not the content was read to its end")
	}
}
