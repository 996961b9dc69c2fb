package transport_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

func TestDeniedAddresses(t *testing.T) {
	t.Parallel()
	factory := transport.New(transport.Options{AllowLoopback: true, DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	t.Cleanup(factory.Close)
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "[fe80::1%25lo]", "[64:ff9b::169.254.169.254]",
		"[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "10.1.2.3", "[::ffff:10.1.2.3]", "[64:ff9b::a01:203]",
	} {
		plain := strings.ReplaceAll(host, "%25", "%")
		if _, err := factory.Dial(t.Context(), plain+":80", credential.Proxy{}); !errors.Is(err, transport.ErrDenied) {
			t.Errorf("dial %s: want %v, got %v", plain, transport.ErrDenied, err)
		}
		target := "http://" + host + "/latest/meta-data"
		if err := get(t, factory, target, target); !errors.Is(err, transport.ErrDenied) {
			t.Errorf("get %s: want %v, got %v", target, transport.ErrDenied, err)
		}
	}
}

func TestDeniedAddressIsNotAskedOfAProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.RequestURI }))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	factory := transport.New(transport.Options{AllowLoopback: true, Proxy: http.ProxyURL(address)})
	t.Cleanup(factory.Close)
	denied := "http://169.254.169.254/x"
	if err := get(t, factory, denied, denied); !errors.Is(err, transport.ErrDenied) {
		t.Errorf("want %v, got %v", transport.ErrDenied, err)
	}
	allowed := "http://example.invalid/y"
	if err := get(t, factory, allowed, allowed); err != nil {
		t.Error(err)
	}
	if got := <-asked; got != allowed {
		t.Errorf("the proxy was asked for %s", got)
	}
}

func TestNamesAreJudgedByTheirAddresses(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	open := transport.New(transport.Options{AllowLoopback: true})
	conn, err := open.Dial(t.Context(), "localhost:"+port, credential.Proxy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	closed := transport.New(transport.Options{})
	if _, err := closed.Dial(t.Context(), "localhost:"+port, credential.Proxy{}); !errors.Is(err, transport.ErrDenied) {
		t.Errorf("want %v, got %v", transport.ErrDenied, err)
	}
}

// get asks for the target with a client of the origin.
func get(t *testing.T, factory *transport.Factory, origin, target string) error {
	t.Helper()
	home, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := factory.HTTP(home, credential.TLS{}, credential.Proxy{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("user", "s3cr3t-canary")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
