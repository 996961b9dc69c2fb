package git_test

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestPollsShareAnSSHConnection with all that the same identity asks the same server, and with nobody else.
func TestPollsShareAnSSHConnection(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.Fixture.Repository("other").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	server, as := serveSSH(t, h.Fixture, upstream.SSHOptions{})
	client := newClient(t)
	for range 3 {
		if _, err := client.ListRefs(t.Context(), over(server.URL("app"), as), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
	}
	fetch(t, client, over(server.URL("app"), as), git.Want{Hash: h.tip})
	if _, err := client.ListRefs(t.Context(), over(server.URL("other"), as)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListRefs(t.Context(), over(server.URL("nope"), as)); err == nil {
		t.Error("there is no such repository")
	}
	commands, err := server.Commands()
	if err != nil {
		t.Fatal(err)
	}
	// What goes wrong on a kept connection is tried once more on a new one.
	if connections := server.Connections(); connections != 2 || len(commands) != 7 {
		t.Errorf("%d connections for %d commands", connections, len(commands))
	}
	key, err := upstream.GenerateKey(upstream.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	stranger := as
	stranger.PrivateKey = keyPEM(t, key)
	if _, err := client.ListRefs(t.Context(), over(server.URL("app"), stranger)); err == nil {
		t.Error("somebody else got in")
	}
}

// TestAClosedSSHConnectionIsNotMissed: the next poll dials again.
func TestAClosedSSHConnectionIsNotMissed(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	server, as := serveSSH(t, h.Fixture, upstream.SSHOptions{})
	client := newClient(t)
	for range 3 {
		if _, err := client.ListRefs(t.Context(), over(server.URL("app"), as), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		server.Cut()
	}
	if got := server.Connections(); got != 3 {
		t.Errorf("%d connections", got)
	}
}

// deaf is a connection of which nothing more is read once the other end does not count any more.
type deaf struct {
	net.Conn

	now atomic.Bool
	end chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if d.now.Load() {
		<-d.end
		return 0, io.EOF
	}
	return n, err
}

// TestAnEndlessSSHSessionIsNotKept: what its server sends takes memory, and nobody reads it.
func TestAnEndlessSSHSessionIsNotKept(t *testing.T) {
	t.Parallel()
	key, err := upstream.GenerateKey(upstream.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	t.Cleanup(func() { close(end); _ = listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			serveEndless(&deaf{Conn: conn, end: end}, key.Signer)
		}
	}()
	address := listener.Addr().String()
	as := credential.SSH{PrivateKey: keyPEM(t, key), KnownHosts: []byte(knownhosts.Line([]string{address}, key.Signer.PublicKey()))}
	client := newClient(t)
	refs, err := client.ListRefs(t.Context(), over("ssh://git@"+address+"/app", as), "refs/heads/main")
	if err != nil || len(refs) != 1 {
		t.Fatalf("%v, %v", refs, err)
	}
	if client.Waiting() != 0 {
		t.Error("the connection is kept")
	}
}

// serveEndless answers one question with one ref, and never ends the session.
func serveEndless(conn *deaf, key ssh.Signer) {
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(key)
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range requests {
				_ = request.Reply(true, nil)
			}
		}()
		_, _ = io.WriteString(channel, "000eversion 2\n000cls-refs\n0000")
		for question := ""; !strings.HasSuffix(question, "0000"); {
			part := make([]byte, 1000)
			n, err := channel.Read(part)
			if err != nil {
				return
			}
			question += string(part[:n])
		}
		conn.now.Store(true)
		_, _ = io.WriteString(channel, "003d"+strings.Repeat("1", 40)+" refs/heads/main\n0000")
	}
}
