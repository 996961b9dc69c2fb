package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHOptions are what a GitSSH starts with.
type SSHOptions struct {
	// Address to listen on; 127.0.0.1:0 when empty.
	Address string
	// WithoutV2 makes the server ignore the client's wish for protocol v2 and v1.
	WithoutV2 bool
	// HostKeys are the kinds of the server's host keys; Ed25519 and ECDSA when empty, as RSA's take long to make.
	HostKeys []KeyType
}

// GitSSH serves a folder of repositories through OpenSSH's sshd: one sshd for each connection, behind a listener
// of our own, so that a free port is found without a race and connections can be hung or cut.
type GitSSH struct {
	sshd  string
	kinds []KeyType
	dir   string
	user  string
	key   *SSHKey
	wire  *countingListener
	stop  context.CancelFunc
	conns sync.WaitGroup

	settled atomic.Int64 // connections whose fault is chosen

	mu     sync.Mutex
	cuts   []context.CancelFunc // of all connections
	hosts  map[KeyType]*SSHKey
	faults []plannedSSH
	always SSHFault
	log    bytes.Buffer
}

// ServeSSH starts a server for the repositories under root. It runs until Close, or until ctx is done.
func ServeSSH(ctx context.Context, root string, options SSHOptions) (*GitSSH, error) {
	s, err := newGitSSH(root, options)
	if err != nil {
		return nil, fmt.Errorf("serve %q over ssh: %w", root, err)
	}
	s.wire, _, err = listen(ctx, HTTPOptions{Address: options.Address})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve %q over ssh: %w", root, err), os.RemoveAll(s.dir))
	}
	ctx, s.stop = context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { s.wire.Close() })
	s.conns.Go(func() { s.accept(ctx) })
	return s, nil
}

func newGitSSH(root string, options SSHOptions) (*GitSSH, error) {
	s := &GitSSH{kinds: options.HostKeys}
	if len(s.kinds) == 0 {
		s.kinds = []KeyType{Ed25519, ECDSA}
	}
	var err error
	if s.sshd, err = EnsureSSHD(); err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if s.user, err = login(); err != nil {
		return nil, err
	}
	if s.key, err = GenerateKey(Ed25519); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "upstream-sshd-"); err != nil {
		return nil, err
	}
	if err = errors.Join(sshdFolder(s.dir, root, s.key), s.RotateHostKeys(), s.SetV2(!options.WithoutV2)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// Close stops the server, cuts its connections, and waits for their sshd to end.
func (s *GitSSH) Close() error {
	s.stop()
	s.conns.Wait()
	return os.RemoveAll(s.dir)
}

// Address is host:port.
func (s *GitSSH) Address() string { return s.wire.Addr().String() }

// User is the name to log in with: the one that the process runs as.
func (s *GitSSH) User() string { return s.user }

// URL is where the repository of that name is served: ssh://user@host:port/name.git.
func (s *GitSSH) URL(name string) string {
	return "ssh://" + s.user + "@" + s.Address() + "/" + name + ".git"
}

// Key is the key that the server lets in from the start.
func (s *GitSSH) Key() *SSHKey { return s.key }

// Authorize lets these keys in and no other.
func (s *GitSSH) Authorize(keys ...*SSHKey) error {
	var lines bytes.Buffer
	for _, key := range keys {
		lines.Write(key.Authorized())
	}
	return os.WriteFile(filepath.Join(s.dir, "authorized_keys"), lines.Bytes(), 0o600)
}

// RotateHostKeys gives the server new host keys. Connections under way keep the old ones.
func (s *GitSSH) RotateHostKeys() error {
	hosts := map[KeyType]*SSHKey{}
	for _, kind := range s.kinds {
		key, err := GenerateKey(kind)
		if err != nil {
			return err
		}
		hosts[kind] = key
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, key := range hosts {
		content, err := key.PEM()
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.hostKeyFile(kind), content, 0o600); err != nil {
			return err
		}
	}
	s.hosts = hosts
	return nil
}

func (s *GitSSH) hostKeyFile(kind KeyType) string { return filepath.Join(s.dir, "host_"+string(kind)) }

// HostKey is the server's public key of the kind; nil when it has none.
func (s *GitSSH) HostKey(kind KeyType) ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.hosts[kind]; ok {
		return key.Signer.PublicKey()
	}
	return nil
}

// KnownHosts is a known_hosts file that names the server's keys of these kinds; all of them without a kind.
func (s *GitSSH) KnownHosts(kinds ...KeyType) []byte {
	return s.knownHosts(knownhosts.Normalize(s.Address()), kinds)
}

// HashedKnownHosts is KnownHosts with the host's name hashed, as HashKnownHosts writes it.
func (s *GitSSH) HashedKnownHosts(kinds ...KeyType) []byte {
	return s.knownHosts(knownhosts.HashHostname(knownhosts.Normalize(s.Address())), kinds)
}

func (s *GitSSH) knownHosts(host string, kinds []KeyType) []byte {
	if len(kinds) == 0 {
		kinds = s.kinds
	}
	var lines bytes.Buffer
	for _, kind := range kinds {
		if key := s.HostKey(kind); key != nil {
			fmt.Fprintf(&lines, "%s %s", host, ssh.MarshalAuthorizedKey(key))
		}
	}
	return lines.Bytes()
}

// SetV2 switches protocol v2 on or off.
func (s *GitSSH) SetV2(on bool) error {
	mark := filepath.Join(s.dir, "without-v2")
	if !on {
		return os.WriteFile(mark, nil, 0o600)
	}
	if err := os.Remove(mark); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// SSHCommand is one command that a client asked sshd to run.
type SSHCommand struct {
	Line     string // as the client sent it
	Protocol string // GIT_PROTOCOL
}

// Commands are the commands so far, also those that were refused.
func (s *GitSSH) Commands() ([]SSHCommand, error) {
	content, err := os.ReadFile(filepath.Join(s.dir, "commands"))
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(content), "\x00")
	var commands []SSHCommand
	for i := 0; i+1 < len(fields); i += 2 {
		commands = append(commands, SSHCommand{Line: fields[i], Protocol: fields[i+1]})
	}
	return commands, nil
}

// Connections counts the connections accepted so far. Whether a fault strikes one is settled before it counts.
func (s *GitSSH) Connections() int { return int(s.settled.Load()) }

// BytesOut counts the bytes that the server has sent, encryption included.
func (s *GitSSH) BytesOut() int64 { return s.wire.out.Load() }

// BytesIn counts the bytes that the server has received, encryption included.
func (s *GitSSH) BytesIn() int64 { return s.wire.in.Load() }

// Log is what the sshds have said so far.
func (s *GitSSH) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}
