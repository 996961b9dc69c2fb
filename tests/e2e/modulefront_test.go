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

// front is what a Service is in a cluster: an address of the artifact server that stays when the process does not.
type front struct {
	server  *httptest.Server
	manager atomic.Pointer[testenv.Manager]
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// flag has the program publish this address.
func (f *front) flag() string {
	return "--storage-adv-addr=" + strings.TrimPrefix(f.server.URL, "http://")
}

// ServeHTTP implements http.Handler: it waits until there is a process that listens, as a Service does.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		if manager := f.manager.Load(); manager != nil {
			if addresses, err := manager.Listening(); err == nil && len(addresses) == 1 {
				forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addresses[0]})
				// The process is gone again: that is what the test is for.
				forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
				forward.ServeHTTP(w, r)
				return
			}
		}
		select {
		case <-poll.C:
		case <-r.Context().Done():
			return
		}
	}
}
