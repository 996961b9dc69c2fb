package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// moment is when, in the life of a request to the API server, something happens.
type moment string

const (
	beforeForwarding moment = "before it is forwarded"
	beforeAnswering  moment = "before it is answered"
	afterAnswering   moment = "after it is answered"
)

// apiProxy stands before the API server and counts the writes that pass.
type apiProxy struct {
	kubeconfig string
	forward    http.Handler
	server     *httptest.Server
	counts     func(*http.Request) bool // which writes count; nil counts all

	underWay sync.WaitGroup // writes

	mu     sync.Mutex
	writes []string
	at     int // the number of the write that strikes; zero for none
	when   moment
	strike func()
}

// newAPIProxy starts a proxy with an administrator's rights.
func newAPIProxy(t *testing.T) *apiProxy {
	t.Helper()
	target, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	// The client is gone: that is what this proxy is for.
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	p := &apiProxy{forward: forward, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"proxy",
"clusters":[{"name":"proxy","cluster":{"server":%q}}],"contexts":[{"name":"proxy","context":{"cluster":"proxy","user":"none"}}],
"users":[{"name":"none","user":{}}]}`, p.server.URL)
	if err := os.WriteFile(p.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// onWrite counts from now on, and strikes at the nth write. Zero only counts.
func (p *apiProxy) onWrite(n int, when moment, strike func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.at, p.when, p.strike = nil, n, when, strike
}

// disarm takes back what onWrite has set, and tells whether it was too late for that.
func (p *apiProxy) disarm() (struck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	struck = p.at > 0 && len(p.writes) >= p.at
	p.writes, p.at, p.when, p.strike = nil, 0, "", nil
	return struck
}

// settle waits, once the client is dead, until what it wrote last has come to its end at the API server, so that what is
// read afterwards stays as it is.
func (p *apiProxy) settle() {
	p.server.CloseClientConnections()
	p.underWay.Wait()
}

// seen is the writes since onWrite.
func (p *apiProxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.writes...)
}

// ServeHTTP implements http.Handler.
func (p *apiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		// A client that dies takes nothing back; whether its last write happened is to be known, see settle.
		r = r.WithContext(context.WithoutCancel(r.Context()))
		p.underWay.Add(1)
		defer p.underWay.Done()
	}
	when, strike := p.count(r)
	switch when {
	case beforeForwarding:
		strike()
		panic(http.ErrAbortHandler)
	case beforeAnswering:
		// The write happens, and nobody hears of it.
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		strike()
		panic(http.ErrAbortHandler)
	case afterAnswering:
		answer := httptest.NewRecorder()
		p.forward.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		_ = http.NewResponseController(w).Flush()
		strike()
	default:
		p.forward.ServeHTTP(w, r)
	}
}

func (p *apiProxy) count(r *http.Request) (moment, func()) {
	if r.Method == http.MethodGet || p.counts != nil && !p.counts(r) {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, r.Method+" "+r.URL.Path)
	if len(p.writes) != p.at {
		return "", nil
	}
	return p.when, p.strike
}
