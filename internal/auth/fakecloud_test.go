package auth

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// cloudCA signs the certificates of the fake cloud. The process trusts it as it trusts the system's authorities,
// because the clouds' libraries take no other.
var cloudCA *upstream.CA

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-auth-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if cloudCA, err = upstream.NewCA("clouds"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	file := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(file, cloudCA.PEM(), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Read once, at the first handshake; nothing of the machine the tests run on counts.
	_ = os.Setenv("SSL_CERT_FILE", file)
	_ = os.Setenv("SSL_CERT_DIR", dir)
	return m.Run()
}

// cloud is all hosts of the clouds, behind a proxy that takes a connection to any of them to itself.
type cloud struct {
	address string // of the proxy

	mu      sync.Mutex
	asked   []string
	answers map[string]http.HandlerFunc // by host and path
}

// proxyUser and proxyPassword are what the proxy lets in.
const proxyUser, proxyPassword = "out", "canary-way"

func newCloud(t *testing.T, answers map[string]http.HandlerFunc) *cloud {
	t.Helper()
	c := &cloud{answers: answers}
	hosts := httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	hosts.TLS = &tls.Config{GetCertificate: certificateFor}
	hosts.StartTLS()
	t.Cleanup(hosts.Close)

	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+proxyPassword))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.note("CONNECT " + r.Host)
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != want {
			http.Error(w, "not for you", http.StatusProxyAuthRequired)
			return
		}
		tunnel(w, hosts.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)
	c.address = proxy.URL
	return c
}

func certificateFor(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	identity, err := cloudCA.Server(hello.ServerName)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(identity.CertPEM, identity.KeyPEM)
	return &pair, err
}

func tunnel(w http.ResponseWriter, address string) {
	target, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(target, conn)
		_ = target.Close()
	}()
	_, _ = io.Copy(conn, target)
	_ = conn.Close()
}

func (c *cloud) answer(w http.ResponseWriter, r *http.Request) {
	c.note(r.Host + r.URL.Path)
	answer, ok := c.answers[r.Host+r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

func (c *cloud) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, what)
}

// count is how often the host and path were asked for.
func (c *cloud) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(c.asked), func(asked string) bool { return asked != what }))
}

// secret is the Secret with the proxy's address.
func (c *cloud) secret() map[string]string {
	return map[string]string{"address": c.address, "username": proxyUser, "password": proxyPassword}
}

// reply answers with JSON.
func reply(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, format, args...)
	}
}

// web makes a JSON web token of the claims, which nobody checks the signature of.
func web(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return strings.Join([]string{encode([]byte(`{"alg":"none"}`)), encode([]byte(claims)), encode([]byte("canary"))}, ".")
}
