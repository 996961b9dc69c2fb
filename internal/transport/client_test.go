package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

func TestCredentialsStayAtTheirOrigin(t *testing.T) {
	t.Parallel()
	sink, err := upstream.NewSink(t.Context(), upstream.SinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	var home *httptest.Server
	var authorized atomic.Int32
	home = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			authorized.Add(1)
		}
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, home.URL+"/end", http.StatusFound)
		case "/away":
			http.Redirect(w, r, sink.URL()+"/x", http.StatusTemporaryRedirect)
		case "/name":
			http.Redirect(w, r, strings.Replace(sink.URL(), "127.0.0.1", "localhost", 1), http.StatusFound)
		case "/scheme":
			http.Redirect(w, r, "ftp://127.0.0.1/x", http.StatusFound)
		}
	}))
	t.Cleanup(home.Close)
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	if err := get(t, factory, home.URL, home.URL+"/same"); err != nil || authorized.Load() != 2 {
		t.Errorf("the own origin must get the credential after a redirect too: %d, %v", authorized.Load(), err)
	}
	for _, path := range []string{"/away", "/name"} {
		if err := get(t, factory, home.URL, home.URL+path); err != nil {
			t.Error(err)
		}
	}
	if err := get(t, factory, home.URL, sink.URL()); err != nil {
		t.Error(err)
	}
	if len(sink.Requests()) != 3 || len(sink.Secrets()) != 0 {
		t.Errorf("the sink got %d requests with %v", len(sink.Requests()), sink.Secrets())
	}
	if err := get(t, factory, home.URL, home.URL+"/scheme"); !errors.Is(err, transport.ErrRedirect) {
		t.Errorf("want %v, got %v", transport.ErrRedirect, err)
	}
}

func TestClientCertificateStaysAtItsOrigin(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app")
	ca, clients := f.CA(), f.CA()
	identity, err := clients.Client("someone")
	if err != nil {
		t.Fatal(err)
	}
	home := f.HTTP(upstream.HTTPOptions{CA: ca})
	strict := f.HTTP(upstream.HTTPOptions{CA: ca, ClientCA: clients})
	tls := credential.TLS{CA: ca.PEM(), Certificate: identity.CertPEM, Key: credential.NewSecret(identity.KeyPEM)}
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	ask := func(origin, target string) error {
		client, err := factory.HTTP(parse(t, origin), tls, credential.Proxy{})
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target+"/app.git/HEAD", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	if err := ask(strict.BaseURL(), strict.BaseURL()); err != nil {
		t.Errorf("at its origin the certificate must be shown: %v", err)
	}
	if err := ask(home.BaseURL(), strict.BaseURL()); err == nil {
		t.Error("the certificate was shown to another origin")
	}
}

func TestConnectionsAreSharedByIdentity(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app")
	ca, other := f.CA(), f.CA()
	server := f.HTTP(upstream.HTTPOptions{CA: ca})
	factory := transport.New(transport.Options{AllowLoopback: true, MaxIdentities: 1})
	t.Cleanup(factory.Close)
	ask := func(bundle []byte) {
		t.Helper()
		client, err := factory.HTTP(parse(t, server.BaseURL()), credential.TLS{CA: bundle}, credential.Proxy{})
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.BaseURL()+"/app.git/HEAD", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	both := append(other.PEM(), ca.PEM()...)
	for i, step := range []struct {
		bundle []byte
		want   int
	}{{ca.PEM(), 1}, {ca.PEM(), 1}, {both, 2}, {both, 2}, {ca.PEM(), 3}} {
		ask(step.bundle)
		if got := server.Connections(); got != step.want {
			t.Errorf("step %d: want %d connections, got %d", i, step.want, got)
		}
	}
}

func TestStalledBodyEnds(t *testing.T) {
	t.Parallel()
	factory := transport.New(transport.Options{AllowLoopback: true, StallTimeout: 50 * time.Millisecond})
	silent, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	body := factory.Body(begun{strings.NewReader("beginning"), silent})
	// Each read has the whole time; that there is data at once does not depend on who runs when.
	content, err := io.ReadAll(body)
	if !errors.Is(err, transport.ErrStalled) || string(content) != "beginning" {
		t.Errorf("got %q, %v", content, err)
	}
	body = factory.Body(io.NopCloser(strings.NewReader("")))
	if content, err := io.ReadAll(body); err != nil || len(content) > 0 {
		t.Errorf("an end is no stall: %v", err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

// begun is a body whose first bytes are there already.
type begun struct {
	first *strings.Reader
	io.ReadCloser
}

func (b begun) Read(p []byte) (int, error) {
	if b.first.Len() > 0 {
		return b.first.Read(p)
	}
	return b.ReadCloser.Read(p)
}

func TestSafeError(t *testing.T) {
	t.Parallel()
	cause := errors.New("\x1b[31mget https://user:s3cr3t-canary@host/a?token=s3cr3t-canary: s3cr3t-canary\r\nSet: x" + strings.Repeat("y", 5000))
	err := transport.SafeError(cause, credential.NewSecret("s3cr3t-canary"))
	if !strings.HasPrefix(err.Error(), `\x1b[31mget https://host/a [redacted]\r\nSet: xyy`) {
		t.Errorf("got %s", err)
	}
	if strings.Contains(err.Error(), "canary") || len(err.Error()) > 1100 || strings.ContainsAny(err.Error(), "\r\n\x1b") {
		t.Errorf("got %s", err)
	}
	if !errors.Is(err, cause) || errors.Unwrap(err) != nil || transport.SafeError(nil) != nil {
		t.Error("errors.Is must see the cause, and nothing unwrap to it")
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünï": "plain ünï", "a\nb\x00\x7f": `a\nb\x00\x7f`, "\xff": `\xff`, "\u202e": `\u202e`, "": "",
	} {
		if got := transport.Printable(in); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	if got := transport.Printable(strings.Repeat("x", 1000)); len(got) > 250 || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
	if got := transport.PrintableQuoted("a\"b"); got != `"a\"b"` {
		t.Errorf("got %s", got)
	}
}

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
