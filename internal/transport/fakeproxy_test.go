package transport_test

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/credential"
)

// way is a proxy on loopback that writes down what it was asked for.
type way struct {
	url                string
	username, password string

	mu    sync.Mutex
	asked []string
	conns int
}

func (w *way) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, what)
}

// requests is what the proxy was asked for, in order.
func (w *way) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *way) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns
}

// credential is what a client of the proxy needs.
func (w *way) credential() credential.Proxy {
	return credential.Proxy{URL: w.url, Username: w.username, Password: credential.NewSecret(w.password)}
}

// newHTTPProxy forwards and connects for those who know user and password; empty ones let everybody in.
// start begins to serve it, with or without TLS.
func newHTTPProxy(t *testing.T, username, password string, start func(*httptest.Server)) *way {
	t.Helper()
	w := &way{username: username, password: password}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = r.In.URL }}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.note(r.Method + " " + r.Host)
		given := r.Header.Get("Proxy-Authorization")
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
		switch {
		case username != "" && given != want:
			http.Error(out, "who are you, "+given+"?", http.StatusProxyAuthRequired)
		case r.Method == http.MethodConnect:
			connect(out, r.Host)
		default:
			forward.ServeHTTP(out, r)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			w.mu.Lock()
			w.conns++
			w.mu.Unlock()
		}
	}
	start(server)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func connect(out http.ResponseWriter, address string) {
	target, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(out, "nobody there", http.StatusBadGateway)
		return
	}
	conn, buffered, err := http.NewResponseController(out).Hijack()
	if err != nil {
		_ = target.Close()
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	pipe(conn, buffered, target)
}

// pipe copies both ways until either side ends.
func pipe(client net.Conn, fromClient io.Reader, target net.Conn) {
	go func() {
		_, _ = io.Copy(target, fromClient)
		_ = target.Close()
	}()
	_, _ = io.Copy(client, target)
	_ = client.Close()
}

// newSOCKS5 serves the CONNECT command of RFC 1928, with the user and password of RFC 1929 if a user is given.
func newSOCKS5(t *testing.T, username, password string) *way {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w := &way{url: "socks5://" + listener.Addr().String(), username: username, password: password}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.conns++
			w.mu.Unlock()
			go w.serveSOCKS(conn)
		}
	}()
	return w
}

func (w *way) serveSOCKS(conn net.Conn) {
	r := bufio.NewReader(conn)
	address, ok := w.negotiate(conn, r)
	if !ok {
		_ = conn.Close()
		return
	}
	w.note(address)
	target, err := net.Dial("tcp", address)
	if err != nil {
		_, _ = conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		_ = conn.Close()
		return
	}
	_, _ = conn.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 0})
	pipe(conn, r, target)
}

// negotiate agrees on a method, checks the user, and reads where to connect to.
func (w *way) negotiate(conn net.Conn, r *bufio.Reader) (address string, ok bool) {
	hello := take(r, 2)
	methods := take(r, int(hello[1]))
	want := byte(0)
	if w.username != "" {
		want = 2
	}
	offered := false
	for _, method := range methods {
		offered = offered || method == want
	}
	if !offered {
		_, _ = conn.Write([]byte{5, 0xff})
		return "", false
	}
	_, _ = conn.Write([]byte{5, want})
	if want == 2 {
		user := string(take(r, int(take(r, 2)[1])))
		password := string(take(r, int(take(r, 1)[0])))
		if user != w.username || password != w.password {
			_, _ = conn.Write([]byte{1, 1})
			return "", false
		}
		_, _ = conn.Write([]byte{1, 0})
	}
	var host string
	switch take(r, 4)[3] {
	case 1:
		host = net.IP(take(r, 4)).String()
	case 3:
		host = string(take(r, int(take(r, 1)[0])))
	default:
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(take(r, 2))))), true
}

// take reads n bytes; what is missing is zero, which no step takes for an answer.
func take(r io.Reader, n int) []byte {
	p := make([]byte, n)
	_, _ = io.ReadFull(r, p)
	return p
}
