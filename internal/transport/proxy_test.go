package transport_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

const proxyPassword = "s3cr3t-canary-p/:@ss"

// origin answers everybody, and fails the test if it is shown what belongs to a proxy.
func origin(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the origin got the proxy's password")
		}
		_, _ = io.WriteString(w, "hello")
	}))
	start(server)
	t.Cleanup(server.Close)
	return server
}

// fetch asks for the URL by the proxy and reads the answer to its end.
func fetch(t *testing.T, factory *transport.Factory, target string, identity credential.TLS, by credential.Proxy) error {
	t.Helper()
	client, err := factory.HTTP(parse(t, target), identity, by)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if content, err := io.ReadAll(response.Body); err != nil || string(content) != "hello" {
		t.Errorf("the proxy spoilt the answer: %q, %v", content, err)
	}
	return nil
}

func newFactory(t *testing.T, options transport.Options) *transport.Factory {
	t.Helper()
	factory := transport.New(options)
	t.Cleanup(factory.Close)
	return factory
}

func TestProxyIsUsed(t *testing.T) {
	t.Parallel()
	wrong := func(*http.Request) (*url.URL, error) { return nil, errors.New("the environment was asked for a proxy") }
	http1 := func(s *httptest.Server) { s.Start() }
	cases := map[string]struct {
		reason string
		secure bool
		proxy  func(*testing.T) *way
		asked  string // before the origin's address
	}{
		"forward": {
			reason: "An http URL is asked of the proxy itself.",
			proxy:  func(t *testing.T) *way { t.Helper(); return newHTTPProxy(t, "me", proxyPassword, http1) },
			asked:  "GET ",
		},
		"connect": {
			reason: "An https URL goes through a tunnel.", secure: true,
			proxy: func(t *testing.T) *way { t.Helper(); return newHTTPProxy(t, "me", proxyPassword, http1) },
			asked: "CONNECT ",
		},
		"open": {
			reason: "Not every proxy asks who one is.", secure: true,
			proxy: func(t *testing.T) *way { t.Helper(); return newHTTPProxy(t, "", "", http1) },
			asked: "CONNECT ",
		},
		"socks5": {
			reason: "The proxy is told the address.",
			proxy:  func(t *testing.T) *way { t.Helper(); return newSOCKS5(t, "me", proxyPassword) },
		},
		"socks5 with tls": {
			reason: "TLS is spoken with the origin, through the proxy.", secure: true,
			proxy: func(t *testing.T) *way { t.Helper(); return newSOCKS5(t, "me", proxyPassword) },
		},
		"open socks5": {
			reason: "Not every proxy asks who one is.",
			proxy:  func(t *testing.T) *way { t.Helper(); return newSOCKS5(t, "", "") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := origin(t, func(s *httptest.Server) {
				if tc.secure {
					s.StartTLS()
					return
				}
				s.Start()
			})
			proxy := tc.proxy(t)
			factory := newFactory(t, transport.Options{AllowLoopback: true, Proxy: wrong})
			if err := fetch(t, factory, server.URL, credential.TLS{SkipVerify: tc.secure}, proxy.credential()); err != nil {
				t.Fatalf("%s got %v", tc.reason, err)
			}
			want := []string{tc.asked + server.Listener.Addr().String()}
			if diff := cmp.Diff(want, proxy.requests()); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHTTPSProxyIsVerifiedAndSeesNoClientCertificate(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	ca, clients := f.CA(), f.CA()
	mine, err := clients.Client("someone")
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(own.CertPEM, own.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	proxy := newHTTPProxy(t, "me", proxyPassword, func(s *httptest.Server) {
		s.TLS = &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
			VerifyConnection: func(state tls.ConnectionState) error {
				if len(state.PeerCertificates) > 0 {
					t.Error("the proxy was shown the origin's client certificate")
				}
				return nil
			},
		}
		s.StartTLS()
	})
	server := origin(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients.Pool(),
			MinVersion: tls.VersionTLS12,
		}
		s.StartTLS()
	})
	factory := newFactory(t, transport.Options{AllowLoopback: true})
	identity := credential.TLS{CA: ca.PEM(), Certificate: mine.CertPEM, Key: credential.NewSecret(mine.KeyPEM)}
	if err := fetch(t, factory, server.URL, identity, proxy.credential()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CONNECT " + server.Listener.Addr().String()}, proxy.requests()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := fetch(t, factory, server.URL, credential.TLS{SkipVerify: true}, proxy.credential()); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("an insecure origin must not make the proxy insecure: %v", err)
	}
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	start := func(s *httptest.Server) { s.Start() }
	plain := origin(t, start)
	secure := origin(t, func(s *httptest.Server) { s.StartTLS() })
	web, socks := newHTTPProxy(t, "me", "right", start), newSOCKS5(t, "me", "right")
	open := newHTTPProxy(t, "", "", start)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	given := func(w *way) credential.Proxy {
		return credential.Proxy{URL: w.url, Username: "me", Password: credential.NewSecret(proxyPassword)}
	}

	cases := map[string]struct {
		reason string
		target string
		by     credential.Proxy
		is     error
		want   string
	}{
		"forward":       {reason: "The proxy's answer is no answer of the origin.", target: plain.URL, by: given(web), is: transport.ErrProxyAuthentication},
		"connect":       {reason: "The refusal names the proxy.", target: secure.URL, by: given(web), is: transport.ErrProxyAuthentication, want: strings.TrimPrefix(web.url, "http://")},
		"nobody":        {reason: "No user is a wrong user.", target: secure.URL, by: credential.Proxy{URL: web.url}, is: transport.ErrProxyAuthentication},
		"socks5":        {reason: "The refusal names the proxy.", target: plain.URL, by: given(socks), want: "authentication failed"},
		"socks5 nobody": {reason: "No user is a wrong user.", target: plain.URL, by: credential.Proxy{URL: socks.url}, want: "no acceptable authentication methods"},
		"bad gateway":   {reason: "The proxy says why.", target: strings.Replace(gone.URL, "http:", "https:", 1), by: credential.Proxy{URL: open.url}, is: transport.ErrProxy, want: "502 Bad Gateway"},
		"gone":          {reason: "The proxy is not there.", target: plain.URL, by: given(&way{url: gone.URL}), want: "connection refused"},
		"gone socks5":   {reason: "The proxy is not there.", target: plain.URL, by: given(&way{url: strings.Replace(gone.URL, "http:", "socks5:", 1)}), want: "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fetch(t, newFactory(t, transport.Options{AllowLoopback: true}), tc.target, credential.TLS{SkipVerify: true}, tc.by)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s got %v", tc.reason, err)
			}
			printed := err.Error() + transport.SafeError(err).Error()
			if strings.Contains(printed, "canary") || strings.Contains(printed, "me:") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

func TestProxyURLIsChecked(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		proxy  credential.Proxy
	}{
		"scheme":    {"A proxy of another kind is not asked.", credential.Proxy{URL: "ftp://canary:1"}},
		"no scheme": {"What is no URL is not guessed at.", credential.Proxy{URL: "canary:3128"}},
		"no host":   {"There is nobody to ask.", credential.Proxy{URL: "http://:3128"}},
		"no url":    {"The parser would quote it.", credential.Proxy{URL: "http://canary:pass word@host"}},
		"userinfo":  {"A password belongs in the field that redacts it.", credential.Proxy{URL: "http://me:canary@host:1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newFactory(t, transport.Options{AllowLoopback: true}).HTTP(parse(t, "https://registry.example"), credential.TLS{}, tc.proxy)
			if !errors.Is(err, transport.ErrProxyURL) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s got %v", tc.reason, err)
			}
		})
	}
}

func TestDialPolicyHoldsForProxies(t *testing.T) {
	t.Parallel()
	server := origin(t, func(s *httptest.Server) { s.Start() })
	closed := transport.Options{}
	web, socks := newHTTPProxy(t, "", "", func(s *httptest.Server) { s.Start() }), newSOCKS5(t, "", "")
	for _, proxy := range []*way{web, socks} {
		if err := fetch(t, newFactory(t, closed), "http://registry.example", credential.TLS{}, proxy.credential()); !errors.Is(err, transport.ErrDenied) {
			t.Errorf("proxy %s: want %v, got %v", proxy.url, transport.ErrDenied, err)
		}
		if err := fetch(t, newFactory(t, transport.Options{AllowLoopback: true}), "http://169.254.169.254/", credential.TLS{}, proxy.credential()); !errors.Is(err, transport.ErrDenied) {
			t.Errorf("target behind %s: want %v, got %v", proxy.url, transport.ErrDenied, err)
		}
		if asked := proxy.requests(); len(asked) > 0 {
			t.Errorf("the proxy was asked for %v", asked)
		}
		if err := fetch(t, newFactory(t, transport.Options{AllowLoopback: true}), server.URL, credential.TLS{}, proxy.credential()); err != nil {
			t.Error(err)
		}
	}
	denied := credential.Proxy{URL: "http://169.254.169.254:3128"}
	if err := fetch(t, newFactory(t, transport.Options{AllowLoopback: true}), server.URL, credential.TLS{}, denied); !errors.Is(err, transport.ErrDenied) {
		t.Errorf("want %v, got %v", transport.ErrDenied, err)
	}
}

func TestProxiesNeverShareConnections(t *testing.T) {
	t.Parallel()
	start := func(s *httptest.Server) { s.Start() }
	server := origin(t, func(s *httptest.Server) { s.StartTLS() })
	one, two := newHTTPProxy(t, "me", "pass-one", start), newHTTPProxy(t, "me", "pass-two", start)
	factory := newFactory(t, transport.Options{AllowLoopback: true})
	insecure := credential.TLS{SkipVerify: true}
	for _, by := range []credential.Proxy{one.credential(), two.credential(), {}, one.credential(), two.credential(), {}} {
		if err := fetch(t, factory, server.URL, insecure, by); err != nil {
			t.Fatal(err)
		}
	}
	if one.connections() != 1 || two.connections() != 1 || len(one.requests()) != 1 || len(two.requests()) != 1 {
		t.Errorf("want one connection by each proxy, got %d and %d", one.connections(), two.connections())
	}
	wrong := one.credential()
	wrong.Password = credential.NewSecret("pass-two")
	if err := fetch(t, factory, server.URL, insecure, wrong); !errors.Is(err, transport.ErrProxyAuthentication) {
		t.Errorf("another password got the first one's tunnel: %v", err)
	}
}

func TestVerificationIsSkippedForOneIdentityAlone(t *testing.T) {
	t.Parallel()
	server := origin(t, func(s *httptest.Server) { s.StartTLS() })
	factory := newFactory(t, transport.Options{AllowLoopback: true})
	for range 2 {
		if err := fetch(t, factory, server.URL, credential.TLS{SkipVerify: true}, credential.Proxy{}); err != nil {
			t.Errorf("insecure was asked for: %v", err)
		}
		if err := fetch(t, factory, server.URL, credential.TLS{}, credential.Proxy{}); err == nil {
			t.Error("an unknown authority was accepted")
		}
	}
}
