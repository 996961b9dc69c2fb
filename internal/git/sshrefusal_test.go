package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// answerSSH serves one SSH session after the other, and has each command answered by the function. It does not end a
// session by itself.
func answerSSH(t *testing.T, answer func(ssh.Channel)) git.Remote {
	t.Helper()
	f := upstream.ForTest(t)
	host, user := f.Key(upstream.Ed25519), f.Key(upstream.Ed25519)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(host.Signer)
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
			go serveSession(conn, config, answer)
		}
	}()
	line := knownhosts.Line([]string{knownhosts.Normalize(listener.Addr().String())}, host.Signer.PublicKey())
	return over(fmt.Sprintf("ssh://git@%s/app", listener.Addr()), credential.SSH{
		PrivateKey: keyPEM(t, user), KnownHosts: []byte(line + "\n"),
	})
}

func serveSession(conn net.Conn, config *ssh.ServerConfig, answer func(ssh.Channel)) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range asked {
			_ = request.Reply(request.Type == "exec", nil)
			if request.Type == "exec" {
				go answer(channel)
			}
		}
	}
}

func TestSSHRefusalsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		answer func(ssh.Channel)
		want   error
	}{
		"talks on": {"A server that says much, and no advertisement, waits until it is read; its words explain nothing.", func(c ssh.Channel) {
			_, _ = io.WriteString(c.Stderr(), "Unauthorized use is forbidden.\n")
			_, _ = c.Write(bytes.Repeat([]byte("welcome!"), 1<<20))
			_, _ = c.SendRequest("exit-status", false, []byte{0, 0, 0, 1})
			_ = c.Close()
		}, git.ErrProtocol},
		"stays": {"A server that said why, and keeps the session.", func(c ssh.Channel) {
			_, _ = io.WriteString(c.Stderr(), "ERROR: Repository not found.\n")
			_ = c.CloseWrite()
		}, git.ErrNotFound},
		"says nothing": {"A server that ends its answer, and keeps the session.", func(c ssh.Channel) {
			_ = c.CloseWrite()
		}, git.ErrProtocol},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err := newClient(t).ListRefs(ctx, answerSSH(t, c.answer))
			checkError(t, c.reason, err, c.want)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s waited until the end: %v", c.reason, err)
			}
		})
	}
}

// TestWhoMayOnlyReadIsToldSo in the words of servers that take no push over SSH.
func TestWhoMayOnlyReadIsToldSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stderr, packet string
		want           error
	}{
		"GitHub":              {stderr: "ERROR: Permission to o/r.git denied to ada.\n", want: git.ErrAuthentication},
		"GitHub's deploy key": {stderr: "ERROR: The key you are authenticating with has been marked as read only.\n", want: git.ErrAuthentication},
		"GitHub's archive":    {stderr: "ERROR: This repository was archived so it is read-only.\n", want: git.ErrAuthentication},
		"GitLab":              {stderr: "remote: ERROR: You are not allowed to push code to this project.\n", want: git.ErrAuthentication},
		"GitLab's deploy key": {stderr: "remote: ERROR: This deploy key does not have write access to this project.\n", want: git.ErrAuthentication},
		"Forgejo":             {stderr: "Forgejo: Deploy Key: 1:app is not authorized to write to o/r.\n", want: git.ErrAuthentication},
		"Azure DevOps":        {stderr: "remote: TF401027: You need the Git 'GenericContribute' permission to perform this action.\n", want: git.ErrAuthentication},
		"Gitolite":            {stderr: "FATAL: W any app ada DENIED by fallthru\n", want: git.ErrAuthentication},
		"Bitbucket":           {packet: "ERR You are not permitted to write to this repository\n", want: git.ErrAuthentication},
		"no repository":       {packet: "ERR Repository not found\nThe requested repository does not exist, or you do not have permission to access it.\n", want: git.ErrNotFound},
		"something else":      {packet: "ERR out of coffee\n", want: git.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := answerSSH(t, func(channel ssh.Channel) {
				_, _ = io.WriteString(channel.Stderr(), c.stderr)
				if c.packet != "" {
					_, _ = fmt.Fprintf(channel, "%04x%s", len(c.packet)+4, c.packet)
				}
				_ = channel.Close()
			})
			_, err := newClient(t).Push(t.Context(), remote, git.PushRequest{Updates: []git.Update{{Ref: "refs/heads/main", New: newID}}})
			checkError(t, name, err, c.want)
		})
	}
}
