package git_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// cutAfter passes connections on to the address, and breaks each off after so many bytes from the client: it closes it, or it
// takes no more.
func cutAfter(t *testing.T, address string, bytes int64, closes bool) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // The test is over.
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			// The kernel would take what is left of a pack in the proxy's place, were its buffer free to grow.
			if taken, ok := client.(*net.TCPConn); !ok || taken.SetReadBuffer(64<<10) != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = errors.Join(client.Close(), server.Close()) })
			go func() { _, _ = io.Copy(client, server) }()
			go func() {
				_, _ = io.CopyN(server, client, bytes)
				if closes {
					_ = errors.Join(client.Close(), server.Close())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// TestAServerThatTakesNoMore of a push is given up, whether it closes the connection or falls silent, and nothing has moved.
func TestAServerThatTakesNoMore(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		for _, closes := range []bool{true, false} {
			t.Run(over+map[bool]string{true: " closes", false: " is silent"}[closes], func(t *testing.T) {
				t.Parallel()
				w := newWriter(t, over)
				first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
				objects := w.compose(first)
				contents := map[string]string{}
				for i := range 20 {
					contents[strings.Repeat("f", i+1)] = noise(1<<20) + strings.Repeat("x", i)
				}
				mine := w.commit(objects, commitOn(first, folder("b", contents)))
				request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: mine}}}
				broken := w.remote
				front := cutAfter(t, w.address(), 4<<20, closes)
				broken.URL = strings.Replace(broken.URL, w.address(), front, 1)
				if over == "ssh" {
					as := *broken.Credential.SSH
					host, port, _ := strings.Cut(front, ":")
					_, key, _ := strings.Cut(string(as.KnownHosts), " ")
					as.KnownHosts = []byte("[" + host + "]:" + port + " " + key)
					broken.Credential.SSH = &as
				}
				client := newClientOver(t, transport.Options{AllowLoopback: true, StallTimeout: 2 * time.Second})
				began := time.Now()
				_, err := client.Push(t.Context(), broken, request)
				var want error
				if !closes {
					want = transport.ErrStalled
				}
				checkError(t, over, err, want)
				if took := time.Since(began); took > time.Minute {
					t.Errorf("it took %v", took)
				}
				if got := w.Raw("rev-parse", "main"); got != first {
					t.Errorf("main is at %s", got)
				}
				w.moves(request)
				w.sound()
			})
		}
	}
}
