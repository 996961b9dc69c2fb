package registry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

func TestPlainHTTPOnlyWhereInsecure(t *testing.T) {
	t.Parallel()
	site := fixture.ForTest(t, fixture.Options{Auth: fixture.TokenAuth, Users: map[string]string{user: password}})
	site.Repository(name).PushORAS("v1", layer("x"))
	site.Reset()
	client, seen := newClient(t, nil)
	r := Repository{Host: site.Host(), Name: name, Credential: credential.Registry{
		Username: user, Password: credential.NewSecret(password),
	}}
	_, err := client.Resolve(t.Context(), r, "v1")
	if err == nil || !strings.Contains(err.Error(), "set spec.insecure") {
		t.Errorf("a registry without TLS: %v", err)
	}
	if seen.count("http://") != 0 || seen.count("credentials") != 0 || len(site.Requests()) != 0 {
		t.Errorf("sent %v", seen.sent)
	}

	r.Insecure = true
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
		t.Fatalf("insecure: %v", err)
	}
	tried := seen.count("https://")
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil || seen.count("https://") != tried {
		t.Errorf("the scheme was not remembered: %v, %v", err, seen.sent)
	}
}

// TestAPlainRegistryNeedsNoTunnel: proxies make tunnels for TLS, and seldom to the port of plain http.
func TestAPlainRegistryNeedsNoTunnel(t *testing.T) {
	t.Parallel()
	site := fixture.ForTest(t, fixture.Options{Auth: fixture.TokenAuth, Users: map[string]string{user: password}})
	pushed := site.Repository(name).PushORAS("v1", layer("x"))
	for _, status := range []int{http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusBadGateway} {
		forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL = p.In.URL }}
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodConnect {
				w.WriteHeader(status)
				return
			}
			forward.ServeHTTP(w, request)
		}))
		t.Cleanup(proxy.Close)
		client, _ := newClient(t, nil)
		r := Repository{Host: site.Host(), Name: name, Insecure: true, Credential: credential.Registry{
			Username: user, Password: credential.NewSecret(password), Proxy: credential.Proxy{URL: proxy.URL},
		}}
		if found, err := client.Resolve(t.Context(), r, "v1"); err != nil || found.Digest != pushed.Digest {
			t.Errorf("a tunnel is answered %d: %v", status, err)
		}
		r.Insecure = false
		if _, err := client.Resolve(t.Context(), r, "v1"); !errors.Is(err, transport.ErrProxy) {
			t.Errorf("a tunnel is answered %d, and plain http is not allowed: %v", status, err)
		}
	}
}

func TestThePortOfPlainHTTPIsAskedForNoTunnel(t *testing.T) {
	t.Parallel()
	site := fixture.ForTest(t, fixture.Options{})
	pushed := site.Repository(name).PushORAS("v1", layer("x"))
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host = "http", site.Host()
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodConnect {
			t.Errorf("the proxy is asked for a tunnel to %s", request.Host)
		}
		forward.ServeHTTP(w, request)
	}))
	t.Cleanup(proxy.Close)
	client, _ := newClient(t, nil)
	r := Repository{Host: "registry.example:80", Name: name, Insecure: true, Credential: credential.Registry{Proxy: credential.Proxy{URL: proxy.URL}}}
	for range 2 {
		if found, err := client.Resolve(t.Context(), r, "v1"); err != nil || found.Digest != pushed.Digest {
			t.Error(err)
		}
	}
}

func TestInsecureStillPrefersTLS(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("unknown")
	if err != nil {
		t.Fatal(err)
	}
	site := fixture.ForTest(t, fixture.Options{CA: ca})
	site.Repository(name).PushORAS("v1", layer("x"))
	client, seen := newClient(t, nil)
	r := Repository{Host: site.Host(), Name: name, Insecure: true}
	if _, err := client.Resolve(t.Context(), r, "v1"); err == nil {
		t.Error("an unknown certificate was taken without SkipVerify")
	}
	r.Credential.TLS.SkipVerify = true
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
		t.Errorf("insecure: %v", err)
	}
	if seen.count("http://") != 0 {
		t.Errorf("sent %v", seen.sent)
	}
}

func TestARememberedSchemeIsForgotten(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Docker-Content-Digest", blobDescriptor(nil).Digest.String())
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.WriteHeader(status)
	}))
	r := Repository{Host: plain.Listener.Addr().String(), Name: name, Insecure: true}
	client, seen := newClient(t, nil)
	for _, step := range []struct {
		reason string
		close  bool
		status int
		works  bool
		tls    int
	}{
		{"TLS is tried first", false, http.StatusOK, true, 1},
		{"plain http is remembered", false, http.StatusOK, true, 1},
		{"400 is what a server answers that speaks TLS by now", false, http.StatusBadRequest, false, 2},
		{"what fails is tried with TLS as well", true, http.StatusOK, false, 3},
	} {
		if status = step.status; step.close {
			plain.Close()
		}
		_, err := client.Resolve(t.Context(), r, "v1")
		if step.works != (err == nil) || seen.count("https://") != step.tls {
			t.Errorf("%s: %v, %d with TLS", step.reason, err, seen.count("https://"))
		}
	}
}

func TestARefusedRedirectIsTheAnswer(t *testing.T) {
	t.Parallel()
	site := fixture.ForTest(t, fixture.Options{})
	site.Repository(name).PushORAS("v1", layer("x"))
	client, seen := newClient(t, nil)
	r := Repository{Host: site.Host(), Name: name, Insecure: true}
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
		t.Fatal(err)
	}
	site.Always(fixture.RedirectLoop().On(fixture.ManifestHEAD))
	if _, err := client.Resolve(t.Context(), r, "v1"); !errors.Is(err, transport.ErrRedirect) {
		t.Errorf("the redirect is hidden: %v", err)
	}
	if tried := seen.count("https://"); tried != 1 {
		t.Errorf("TLS was tried %d times: %v", tried, seen.sent)
	}
}

func TestARedirectToNowhereIsToldAsSuch(t *testing.T) {
	t.Parallel()
	site := fixture.ForTest(t, fixture.Options{})
	site.Repository(name).PushORAS("v1", layer("x"))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	client, _ := newClient(t, nil)
	r := Repository{Host: site.Host(), Name: name, Insecure: true}
	if _, err := client.Resolve(t.Context(), r, "v1"); err != nil {
		t.Fatal(err)
	}
	site.Always(fixture.Redirect(http.StatusTemporaryRedirect, gone.URL).On(fixture.ManifestHEAD))
	if _, err := client.Resolve(t.Context(), r, "v1"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}
