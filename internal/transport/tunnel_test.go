package transport_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// greeter speaks first, as an SSH server does, and then repeats what it hears.
func greeter(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(conn, "SSH-2.0-greeter\n")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestConnectionsByProxies(t *testing.T) {
	t.Parallel()
	for name, proxy := range map[string]*way{
		"HTTP":           newHTTPProxy(t, "me", proxyPassword, func(s *httptest.Server) { s.Start() }),
		"HTTP for all":   newHTTPProxy(t, "", "", func(s *httptest.Server) { s.Start() }),
		"SOCKS5":         newSOCKS5(t, "me", proxyPassword),
		"SOCKS5 for all": newSOCKS5(t, "", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := greeter(t)
			factory := transport.New(transport.Options{AllowLoopback: true})
			conn, err := factory.Dial(t.Context(), address, proxy.credential())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			in := bufio.NewReader(conn)
			greeting, err := in.ReadString('\n')
			if err != nil || greeting != "SSH-2.0-greeter\n" {
				t.Errorf("greeted with %q, %v", greeting, err)
			}
			if _, err := io.WriteString(conn, "hello\n"); err != nil {
				t.Error(err)
			}
			if echo, err := in.ReadString('\n'); err != nil || echo != "hello\n" {
				t.Errorf("heard %q, %v", echo, err)
			}
			if asked := strings.Join(proxy.requests(), " "); !strings.HasSuffix(asked, address) {
				t.Errorf("the proxy was asked for %q", asked)
			}
		})
	}
}

func TestConnectionsThatProxiesDoNotMake(t *testing.T) {
	t.Parallel()
	web, socks := newHTTPProxy(t, "me", "right", func(s *httptest.Server) { s.Start() }), newSOCKS5(t, "me", "right")
	wrong := credential.NewSecret("wrong-password")
	open := transport.New(transport.Options{AllowLoopback: true})
	closed := transport.New(transport.Options{})
	for name, tc := range map[string]struct {
		factory *transport.Factory
		proxy   credential.Proxy
		address string
		want    error
	}{
		"HTTP login":          {open, credential.Proxy{URL: web.url, Username: "me", Password: wrong}, greeter(t), transport.ErrProxyAuthentication},
		"SOCKS5 login":        {open, credential.Proxy{URL: socks.url, Username: "me", Password: wrong}, greeter(t), nil},
		"nobody there":        {open, web.credential(), "127.0.0.1:1", transport.ErrProxy},
		"scheme":              {open, credential.Proxy{URL: "ftp://proxy.example"}, greeter(t), transport.ErrProxyURL},
		"denied upstream":     {open, socks.credential(), "169.254.169.254:22", transport.ErrDenied},
		"a proxy on loopback": {closed, socks.credential(), "192.0.2.1:22", transport.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := tc.factory.Dial(t.Context(), tc.address, tc.proxy)
			if err == nil {
				_ = conn.Close()
			}
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || strings.Contains(err.Error(), wrong.Reveal()) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestAProxyDoesNotTalkForEver: until the answer to CONNECT ends, all of it is in memory.
func TestAProxyDoesNotTalkForEver(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]string{"One line": "HTTP/1.1 200 ", "Headers": "HTTP/1.1 200 OK\r\n"} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		const most = 16 << 20
		said := make(chan int, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			sent, _ := io.WriteString(conn, begins)
			line := "X: " + strings.Repeat("x", 1000) + "\r\n"
			if name == "One line" {
				line = strings.Repeat("x", 1000)
			}
			for err == nil && sent < most {
				var n int
				n, err = io.WriteString(conn, line)
				sent += n
			}
			said <- sent
		}()
		factory := transport.New(transport.Options{AllowLoopback: true})
		conn, err := factory.Dial(t.Context(), "192.0.2.1:22", credential.Proxy{URL: "http://" + listener.Addr().String()})
		if err == nil {
			_ = conn.Close()
		}
		if sent := <-said; err == nil || sent >= most {
			t.Errorf("%s: the proxy has said %d bytes: %v", name, sent, err)
		}
	}
}
