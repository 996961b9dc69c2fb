package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/tests/testenv"
)

// publish serves at an address that outlives the program, and gives the flag with which that publishes it as its artifact
// server's.
func publish(t *testing.T, handler http.Handler) (flag string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return "--storage-adv-addr=" + strings.TrimPrefix(server.URL, "http://")
}

// front is what a Service is in a cluster: an address of the artifact server that stays when the process does not.
type front struct {
	flag    string
	manager atomic.Pointer[testenv.Manager]
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.flag = publish(t, f)
	return f
}

// ServeHTTP implements http.Handler: it waits until there is a process that listens, as a Service does.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		if address := f.server(r); address != "" {
			forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
			// The process is gone again: that is what the test is for.
			forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
			forward.ServeHTTP(w, r)
			return
		}
		select {
		case <-poll.C:
		case <-r.Context().Done():
			return
		}
	}
}

// server is where the process listens: at one place, or at that of several which has what is asked for. "" is nowhere yet.
func (f *front) server(r *http.Request) string {
	manager := f.manager.Load()
	if manager == nil {
		return ""
	}
	addresses, err := manager.Listening()
	if err != nil || len(addresses) == 1 {
		return strings.Join(addresses, "")
	}
	for _, address := range addresses {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodHead, "http://"+address+r.URL.Path, nil)
		if err != nil {
			return ""
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return address
		}
	}
	return ""
}
