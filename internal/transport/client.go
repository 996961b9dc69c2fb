package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice.dev/sluice/internal/credential"
)

var (
	// ErrRedirect says that a redirect is not followed: too many, a downgrade, or to another scheme than http(s).
	ErrRedirect = errors.New("redirect is not followed")
	// ErrOrigin says that a URL has no usable origin.
	ErrOrigin = errors.New("url has no http or https origin")
)

const (
	maxRedirects           = 3
	maxResponseHeaderBytes = 64 << 10
	maxIdlePerHost         = 4
	pingAfter              = 15 * time.Second
)

// pool is the connections of one TLS identity by one proxy: those that present the client certificate, and those to
// other origins, which never see it.
type pool struct {
	own     *http.Transport
	foreign *http.Transport
}

func (p *pool) close() {
	p.own.CloseIdleConnections()
	p.foreign.CloseIdleConnections()
}

// HTTP returns a client for one origin (scheme, host and port of the URL), its TLS identity and its proxy.
// Certificate and Authorization go to that origin only, whatever URL is asked for or redirected to. GET and HEAD follow
// up to three redirects, never from https to http; the answer to any other method is returned as it is.
//
// A proxy with a URL takes the place of the environment's for every request, and alone gets its user and password.
// Connections are shared only by clients with equal TLS identity and equal proxy.
//
// ErrTLSConfig when a certificate or key is not usable, ErrProxyURL when the proxy's URL is not. A request fails with
// ErrProxyAuthentication or ErrProxy where a proxy refuses it.
func (f *Factory) HTTP(origin *url.URL, identity credential.TLS, proxy credential.Proxy) (*http.Client, error) {
	home := Origin(origin)
	if home == "" {
		return nil, ErrOrigin
	}
	key := identity.Identity() + proxy.Identity()
	connections, err := f.pool(key, func() (*pool, error) { return f.newPool(identity, proxy) })
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     &guard{home: home, pool: connections, policy: f.policy},
		CheckRedirect: checkRedirect,
	}, nil
}

func (f *Factory) newPool(identity credential.TLS, proxy credential.Proxy) (*pool, error) {
	config, err := tlsConfig(identity)
	if err != nil {
		return nil, err
	}
	way, err := ProxyURL(proxy)
	if err != nil {
		return nil, err
	}
	anonymous := config.Clone()
	anonymous.Certificates = nil
	noteRequests(anonymous)
	foreign := f.newTransport(anonymous, way)
	if len(config.Certificates) == 0 {
		return &pool{own: foreign, foreign: foreign}, nil
	}
	return &pool{own: f.newTransport(config, way), foreign: foreign}, nil
}

// newTransport sends by the given proxy, or as the options say if there is none.
func (f *Factory) newTransport(config *tls.Config, proxy *url.URL) *http.Transport {
	t := &http.Transport{
		Proxy:                  f.options.Proxy,
		DialContext:            f.dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  f.options.ResponseHeaderTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		OnProxyConnectResponse: checkConnect,
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	if proxy != nil && proxy.Scheme == schemeHTTPS {
		// All first steps lead to the proxy, and the origin's certificate and leniency are not meant for it.
		t.DialTLSContext = f.dialProxy(config)
	}
	return t
}

// guard is the last gate before a request leaves.
type guard struct {
	home   string
	pool   *pool
	policy policy
}

// RoundTrip sends the request, without what belongs to the home origin if it goes elsewhere.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.policy.checkHost(request.URL.Hostname()); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	if Origin(request.URL) == g.home {
		return checkForward(explained(g.pool.own, request))
	}
	stripped := request.Clone(request.Context())
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer"} {
		stripped.Header.Del(name)
	}
	return checkForward(explained(g.pool.foreign, stripped))
}

func checkRedirect(request *http.Request, via []*http.Request) error {
	if method := via[0].Method; method != http.MethodGet && method != http.MethodHead {
		return http.ErrUseLastResponse
	}
	from, to := via[len(via)-1].URL, request.URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: more than %d in a row", ErrRedirect, maxRedirects)
	case Origin(to) == "":
		return fmt.Errorf("%w: leads to no http or https url", ErrRedirect)
	case from.Scheme == schemeHTTPS && to.Scheme != schemeHTTPS:
		return fmt.Errorf("%w: leads from https to http", ErrRedirect)
	}
	return nil
}

// Origin is scheme://host:port with the port always written, or empty when u has none.
func Origin(u *url.URL) string {
	port := u.Port()
	switch {
	case u.Hostname() == "" || u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS:
		return ""
	case port != "":
	case u.Scheme == schemeHTTPS:
		port = "443"
	default:
		port = "80"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
