package registry

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

const (
	user     = "reader"
	password = "correct-horse-battery"
	name     = "org/app"
)

// wire sees every request over HTTP/1 just before it leaves, and the first of each connection over HTTP/2.
type wire struct {
	mu   sync.Mutex
	sent []string
}

func (w *wire) note(r *http.Request) (*url.URL, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := r.Method + " " + r.URL.Scheme + "://" + r.URL.Host
	if r.Header.Get("Authorization") != "" {
		line += " with credentials"
	}
	w.sent = append(w.sent, line)
	return nil, nil
}

func (w *wire) count(part string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, line := range w.sent {
		if strings.Contains(line, part) {
			count++
		}
	}
	return count
}

func newClient(t *testing.T, change func(*Options)) (*Client, *wire) {
	t.Helper()
	w := &wire{}
	factory := transport.New(transport.Options{AllowLoopback: true, Proxy: w.note})
	t.Cleanup(factory.Close)
	options := Options{Transport: factory}
	if change != nil {
		change(&options)
	}
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client, w
}

// serve starts a TLS server and returns the repository on it, with a credential.
func serve(t *testing.T, handler http.HandlerFunc) Repository {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return Repository{Host: server.Listener.Addr().String(), Name: name, Credential: credential.Registry{
		Username: user, Password: credential.NewSecret(password),
		TLS: credential.TLS{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}}
}

// distribution starts a real registry that speaks TLS.
func distribution(t *testing.T, auth fixture.Auth) (*fixture.Fixture, Repository) {
	t.Helper()
	ca, err := upstream.NewCA("registry test")
	if err != nil {
		t.Fatal(err)
	}
	site := fixture.ForTest(t, fixture.Options{
		CA: ca, Auth: auth, Users: map[string]string{user: password, "other": "other-password"},
	})
	r := Repository{Host: site.Host(), Name: name, Credential: credential.Registry{TLS: credential.TLS{CA: ca.PEM()}}}
	if auth != fixture.None {
		r.Credential.Username, r.Credential.Password = user, credential.NewSecret(password)
	}
	return site, r
}

func layer(content string) fixture.Layer {
	return fixture.Layer{MediaType: ocispec.MediaTypeImageLayerGzip, Content: []byte(content)}
}

// respond writes an answer with a content type.
func respond(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func blobDescriptor(content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageLayerGzip, Digest: digest.FromBytes(content), Size: int64(len(content)),
	}
}

// mustNotLeak fails when the error holds a secret.
func mustNotLeak(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("error holds the password: %v", err)
	}
}
