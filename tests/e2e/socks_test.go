package e2e

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// socks is a SOCKS5 proxy (RFC 1928) with a login (RFC 1929), for which every host is at one address.
type socks struct {
	listener       net.Listener
	target         string
	user, password string
	count          atomic.Int64

	mu    sync.Mutex
	asked []string // host:port
}

func newSocks(t *testing.T, target, user, password string) *socks {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &socks{listener: listener, target: target, user: user, password: password}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *socks) url() string { return "socks5://" + s.listener.Addr().String() }

func (s *socks) passed() int64 { return s.count.Load() }

func (s *socks) serve(near net.Conn) {
	defer func() { _ = near.Close() }()
	in := bufio.NewReader(near)
	host, ok := s.greet(near, in)
	if !ok {
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, host)
	s.mu.Unlock()
	far, err := net.Dial("tcp", s.target)
	if err != nil {
		return
	}
	s.count.Add(1)
	_, _ = near.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 0})
	go func() {
		defer func() { _ = far.Close() }()
		_, _ = io.Copy(far, in)
	}()
	_, _ = io.Copy(near, far)
}

// greet takes the login and the host's name, which is not resolved by the client.
func (s *socks) greet(near net.Conn, in *bufio.Reader) (host string, ok bool) {
	text := func() string { return string(take(in, int(take(in, 1)[0]))) }
	take(in, 1)
	text() // The methods; that with a login is the only one here.
	_, _ = near.Write([]byte{5, 2})
	take(in, 1)
	if user, password := text(), text(); user != s.user || password != s.password {
		_, _ = near.Write([]byte{1, 1})
		return "", false
	}
	_, _ = near.Write([]byte{1, 0})
	const byName = 3
	if take(in, 4)[3] != byName {
		return "", false
	}
	host = text()
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(take(in, 2))))), true
}

// take reads so many bytes; what is missing is zero, which is no answer to anything.
func take(in io.Reader, count int) []byte {
	b := make([]byte, count)
	_, _ = io.ReadFull(in, b)
	return b
}
