package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"sluice.dev/sluice/internal/credential"
)

var (
	// ErrProxyURL says that a proxy's URL cannot be used. Its text repeats nothing of the URL.
	ErrProxyURL = errors.New("proxy url is not usable")
	// ErrProxyAuthentication says that an HTTP proxy wants another user and password, or any at all.
	ErrProxyAuthentication = errors.New("proxy refuses its user and password")
	// ErrProxy says that an HTTP proxy does not connect to the upstream. Its text has the proxy's status.
	ErrProxy = errors.New("proxy does not connect")
)

const (
	schemeHTTP   = "http"
	schemeHTTPS  = "https"
	schemeSOCKS5 = "socks5"
)

// ProxyURL is the proxy's URL as http.Transport takes it, with user and password inside; nil without a proxy.
// It must not reach an error.
func ProxyURL(proxy credential.Proxy) (*url.URL, error) {
	if proxy.URL == "" {
		return nil, nil
	}
	parsed, err := url.Parse(proxy.URL)
	if err != nil || parsed.Hostname() == "" || parsed.User != nil || !slices.Contains([]string{schemeHTTP, schemeHTTPS, schemeSOCKS5}, parsed.Scheme) {
		return nil, fmt.Errorf("%w: it is not scheme://host[:port] with scheme http, https or socks5", ErrProxyURL)
	}
	way := &url.URL{Scheme: parsed.Scheme, Host: parsed.Host}
	if password := proxy.Password.Reveal(); proxy.Username != "" || password != "" {
		way.User = url.UserPassword(proxy.Username, password)
	}
	return way, nil
}

// dialProxy connects to an https proxy. It trusts whom the origin's configuration trusts, but always verifies, and
// presents no certificate.
func (f *Factory) dialProxy(origin *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	dialer := &tls.Dialer{
		NetDialer: f.dialer,
		Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: origin.RootCAs},
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout+handshakeTimeout)
		defer cancel()
		return dialer.DialContext(ctx, network, address)
	}
}

// checkConnect reads a proxy's answer to CONNECT.
func checkConnect(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("proxy %s: %w", Printable(proxy.Host), ErrProxyAuthentication)
	}
	return fmt.Errorf("proxy %s: %w: it answers %s", Printable(proxy.Host), ErrProxy, Printable(response.Status))
}

// checkForward finds a proxy that refuses a request for an http URL: no origin asks for proxy authentication.
func checkForward(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode != http.StatusProxyAuthRequired {
		return response, err
	}
	_ = response.Body.Close() // Nothing in it is needed.
	return nil, ErrProxyAuthentication
}
