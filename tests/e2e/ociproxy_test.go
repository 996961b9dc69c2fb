package e2e

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// proxy is an HTTP proxy with a login, for which every host is at one address: tunnels by CONNECT for https alone, and
// requests with whole URLs for http.
type proxy struct {
	*httptest.Server
	target string
	login  string
	plain  bool // the target speaks no TLS
	count  atomic.Int64
}

func newProxy(t *testing.T, target string, plain bool, password string) *proxy {
	t.Helper()
	p := &proxy{target: target, plain: plain, login: base64.StdEncoding.EncodeToString([]byte("out:" + password))}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// passed is the number of tunnels and requests that were let through.
func (p *proxy) passed() int64 { return p.count.Load() }

// knows tells whether the text holds the proxy's own login.
func (p *proxy) knows(text string) bool { return strings.Contains(text, p.login) }

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Proxy-Authorization") != "Basic "+p.login {
		w.Header().Set("Proxy-Authenticate", `Basic realm="out"`)
		http.Error(w, "log in", http.StatusProxyAuthRequired)
		return
	}
	if r.Method == http.MethodConnect && p.plain {
		http.Error(w, "tunnels are for TLS", http.StatusForbidden)
		return
	}
	p.count.Add(1)
	if r.Method != http.MethodConnect {
		forward := httputil.ReverseProxy{Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Host, out.Out.Host = p.target, r.Host
		}}
		forward.ServeHTTP(w, r)
		return
	}
	var dialer net.Dialer
	far, err := dialer.DialContext(r.Context(), "tcp", p.target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	go func() {
		defer func() { _ = far.Close() }()
		_, _ = io.Copy(far, buffered)
	}()
	defer func() { _ = near.Close() }()
	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
	_, _ = io.Copy(near, far)
}

func allowInsecure(obj *sourcev1.OCIRepository) { obj.Spec.Insecure = true }
