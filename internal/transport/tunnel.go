package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"

	"sluice.dev/sluice/internal/credential"
)

// maxConnectBytes bounds what a proxy answers to CONNECT.
const maxConnectBytes = 64 << 10

// Dial opens a TCP connection to host:port under the dial policy, through the proxy if it has a URL. ErrProxyURL when that
// is not usable, ErrProxyAuthentication and ErrProxy where an HTTP proxy refuses.
func (f *Factory) Dial(ctx context.Context, address string, through credential.Proxy) (net.Conn, error) {
	way, err := ProxyURL(through)
	if err != nil {
		return nil, err
	}
	if way == nil {
		return connected(f.dialer.DialContext(ctx, "tcp", address))
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		if err := f.policy.checkHost(host); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	if way.Scheme == schemeSOCKS5 {
		return connected(f.dialSOCKS(limited, address, way))
	}
	return connected(f.dialTunnel(limited, address, way))
}

func connected(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

func (f *Factory) dialSOCKS(ctx context.Context, address string, way *url.URL) (net.Conn, error) {
	var login *proxy.Auth
	if way.User != nil {
		password, _ := way.User.Password()
		login = &proxy.Auth{User: way.User.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", withPort(way, "1080"), login, f.dialer)
	if err != nil {
		return nil, err
	}
	through, ok := dialer.(proxy.ContextDialer)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot be waited for", ErrProxy)
	}
	return through.DialContext(ctx, "tcp", address)
}

// dialTunnel has an HTTP proxy connect, see RFC 9110, section 9.3.6.
func (f *Factory) dialTunnel(ctx context.Context, address string, way *url.URL) (net.Conn, error) {
	dial, port := f.dialer.DialContext, "80"
	if way.Scheme == schemeHTTPS {
		dial, port = f.dialProxy(&tls.Config{MinVersion: tls.VersionTLS12}), "443"
	}
	conn, err := dial(ctx, "tcp", withPort(way, port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	answered, err := ask(ctx, conn, address, way)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // What matters is why there is no tunnel.
		return nil, err
	}
	return &tunnel{Conn: conn, in: answered}, nil
}

// ask sends CONNECT, and returns what reads the connection from there on: the other end may have spoken already.
func ask(ctx context.Context, conn net.Conn, address string, way *url.URL) (*bufio.Reader, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if way.User != nil {
		password, _ := way.User.Password()
		request.SetBasicAuth(way.User.Username(), password)
		request.Header["Proxy-Authorization"] = request.Header["Authorization"]
		request.Header.Del("Authorization")
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxConnectBytes}
	in := bufio.NewReader(limited)
	response, err := http.ReadResponse(in, request) //nolint:bodyclose // What follows is the tunnel.
	if err != nil {
		return nil, err
	}
	limited.N = math.MaxInt64
	return in, checkConnect(ctx, way, request, response)
}

// tunnel is a connection of which some has been read.
type tunnel struct {
	net.Conn

	in *bufio.Reader
}

// Read reads on.
func (t *tunnel) Read(p []byte) (int, error) { return t.in.Read(p) }

// withPort is the URL's host with its port, or else the one of its scheme.
func withPort(u *url.URL, port string) string {
	if given := u.Port(); given != "" {
		port = given
	}
	return net.JoinHostPort(u.Hostname(), port)
}
