package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const (
	sshPort          = "22"
	sshUser          = "git"
	handshakeTimeout = 30 * time.Second
	// endTimeout is how long a server may take to end a session, and to say why it said nothing.
	endTimeout = 2 * time.Second
	maxStderr  = 4096
	authHint   = "unable to authenticate" // x/crypto/ssh has no error value for it.
)

// sshPeer speaks with a service over one SSH session: advertisement, questions and answers in one stream.
type sshPeer struct {
	*sshConnection

	service   service
	transport *transport.Factory
	address   string
	pool      *sshConnections
	key       string // of the connection
	session   *ssh.Session
	stdin     io.WriteCloser
	stream    *bounded
	packets   *packetReader
	stderr    *opening
	advertise *advert
	release   func() bool
}

func (c *Client) dialSSH(ctx context.Context, to endpoint, as credential.Git, s service, m *meter) (peer, error) {
	config, address, err := c.sshConfig(to, as.SSH)
	if err != nil {
		return nil, err
	}
	key := strings.Join([]string{config.User, address, as.Identity()}, "\x00")
	on := func(connection *sshConnection) *sshPeer {
		return &sshPeer{sshConnection: connection, service: s, transport: c.options.Transport, address: address, pool: c.ssh, key: key}
	}
	if kept := c.ssh.take(key); kept != nil {
		// The server may have closed it meanwhile. What else is wrong shows again on a new one.
		if p, err := c.openSSH(ctx, on(kept), to, nil, m); err == nil || ctx.Err() != nil {
			return p, err
		}
	}
	conn, err := c.options.Transport.Dial(ctx, address, as.Proxy)
	if err != nil {
		return nil, err
	}
	return c.openSSH(ctx, on(newSSHConnection(conn)), to, config, m)
}

// openSSH begins a conversation. A new connection authenticates with the config.
func (c *Client) openSSH(ctx context.Context, p *sshPeer, to endpoint, config *ssh.ClientConfig, m *meter) (peer, error) {
	// A deadline on the connection would need the time of day; closing it when the context ends does not.
	p.stderr, p.release = &opening{}, context.AfterFunc(ctx, func() { _ = p.conn.Close() })
	err := p.open(ctx, config, to.repositoryPath())
	if err == nil {
		err = p.readAdvert(ctx, c.options, m)
	}
	if err != nil {
		p.close(false)
		return nil, err
	}
	return p, nil
}

// sshConfig refuses before it dials when there is nothing to prove either side with.
func (c *Client) sshConfig(to endpoint, as *credential.SSH) (*ssh.ClientConfig, string, error) {
	if as == nil {
		return nil, "", fmt.Errorf("%w: an ssh url needs a private key (identity) and known_hosts", ErrCredential)
	}
	signer, _, err := as.Signer()
	if err != nil {
		return nil, "", fmt.Errorf("%w: it %w", ErrCredential, err)
	}
	known, err := as.Hosts()
	if err != nil {
		return nil, "", fmt.Errorf("%w: it %w", ErrCredential, err)
	}
	hosts := knownHosts(known)
	address := net.JoinHostPort(to.url.Hostname(), cmp.Or(to.url.Port(), sshPort))
	algorithms := hosts.algorithms(hostName(address), c.hostKeyAlgorithms())
	if len(algorithms) == 0 {
		return nil, "", fmt.Errorf("%w: known_hosts has no usable entry for %s", ErrHostKey, hostName(address))
	}
	return &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: c.options.KexAlgorithms},
		User:              cmp.Or(to.username, as.User, sshUser),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   hosts.callback(),
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-sluice",
	}, address, nil
}

func (c *Client) hostKeyAlgorithms() []string {
	if len(c.options.HostKeyAlgorithms) > 0 {
		return c.options.HostKeyAlgorithms
	}
	return slices.DeleteFunc(ssh.SupportedAlgorithms().HostKeys, func(name string) bool { return name == ssh.KeyAlgoRSA })
}

// open starts the service, on a new connection once it has authenticated.
func (p *sshPeer) open(ctx context.Context, config *ssh.ClientConfig, path string) error {
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, func() {
		if ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
			_ = p.conn.Close()
		}
	})
	defer stop()
	if p.client == nil {
		if err := p.authenticate(config); err != nil {
			return err
		}
	}
	var err error
	if p.session, err = p.client.NewSession(); err != nil {
		return err
	}
	p.session.Stderr = p.stderr
	if p.stdin, err = p.session.StdinPipe(); err != nil {
		return err
	}
	if p.service == uploadPack {
		// Servers may refuse the variable; they answer in version 0 then.
		_ = p.session.Setenv("GIT_PROTOCOL", "version=2")
	}
	stdout, err := p.session.StdoutPipe()
	if err != nil {
		return err
	}
	p.stream = &bounded{in: stdout}
	return p.session.Start(string(p.service) + " " + shellQuote(path))
}

// authenticate proves either side to the other.
func (p *sshPeer) authenticate(config *ssh.ClientConfig) error {
	var trust error
	check := config.HostKeyCallback
	config.HostKeyCallback = func(address string, remote net.Addr, key ssh.PublicKey) error {
		trust = check(address, remote, key)
		return trust
	}
	conn, channels, requests, err := ssh.NewClientConn(p.conn, p.address, config)
	var mismatch *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &mismatch) && mismatch.What == "host key":
		return fmt.Errorf("%w: server has no key of the kinds in known_hosts: %w", ErrHostKey, err)
	case trust != nil:
		return trust
	case err != nil && strings.Contains(err.Error(), authHint):
		return fmt.Errorf("%w: %w", ErrAuthentication, err)
	case err != nil:
		return err
	}
	p.client = ssh.NewClient(conn, channels, requests)
	return nil
}

func (p *sshPeer) readAdvert(ctx context.Context, options Options, m *meter) error {
	body := options.Transport.Body(struct {
		io.Reader
		io.Closer
	}{p.stream.in, p.conn})
	p.stream = newBounded(body, maxAdvertBytes, m)
	p.packets = newPacketReader(p.stream)
	var err error
	if p.advertise, err = readAdvert(ctx, p.packets, p.service, options.MaxRefs); err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*remoteError](err); ok {
		return explainRefusal(refusal.message, err)
	}
	if !errors.Is(err, errEmptyAnswer) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err // The server goes on talking, and nobody listens.
	}
	_ = p.stdin.Close()
	p.end()
	if said := p.stderr.String(); said != "" {
		return explainRefusal(said, err)
	}
	return err
}

// end waits a little for the end of the session. It returns false where that does not come, and closes the connection.
func (p *sshPeer) end() bool {
	limit := time.AfterFunc(endTimeout, func() { _ = p.conn.Close() })
	_ = p.session.Wait() // The status says less than the words.
	return limit.Stop()
}

// explainRefusal reads in the words of a server why there was no advertisement. There is no code to go by: these
// are the words of Git, GitHub, GitLab, Gitea, Bitbucket, Azure DevOps and Gitolite, also for who may read and not write.
func explainRefusal(said string, err error) error {
	lower := strings.ToLower(said)
	contains := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) })
	}
	said = transport.PrintableQuoted(strings.TrimSpace(said))
	switch {
	case contains("not found", "not appear to be a git repository", "could not be found", "does not exist",
		"cannot find repository", "not a git repository"):
		return fmt.Errorf("%w: server says %s", ErrNotFound, said)
	case contains("denied", "unauthorized", "not authorized", "forbidden", "could not read from remote",
		"you are not allowed", "you are not permitted", "read only", "read-only", "write access", "permission to perform"):
		return fmt.Errorf("%w: server says %s", ErrAuthentication, said)
	case errors.Is(err, errEmptyAnswer), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w; server says %s", err, said)
	default:
		return err // It has the words already.
	}
}

func (p *sshPeer) advert() *advert { return p.advertise }

func (p *sshPeer) remembered() bool { return false }

func (p *sshPeer) ask(ctx context.Context, question []byte, limit int64) (*packetReader, error) {
	return p.send(ctx, plain(question), limit)
}

func (p *sshPeer) send(_ context.Context, m message, limit int64) (*packetReader, error) {
	p.stream.left, p.stream.limit = limit, limit
	var stalled atomic.Bool
	body := p.transport.Upload(m.open(), func() {
		stalled.Store(true)
		_ = p.conn.Close()
	})
	_, err := io.Copy(p.stdin, body)
	_ = body.Close() // It only stops waiting.
	if stalled.Load() {
		return nil, transport.ErrStalled
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p.packets, nil // What was written is answered, even when that is an error: reading tells more.
}

// close gives the connection back after a complete conversation, unless it was closed meanwhile. What a server goes on saying in
// a session that it does not end would take memory for as long as the connection is kept.
func (p *sshPeer) close(complete bool) {
	if complete {
		_ = p.session.Close() // The server has said all.
		complete = p.end()
	}
	if !p.release() || !complete {
		p.sshConnection.close()
		return
	}
	p.pool.give(p.key, p.sshConnection)
}

// opening keeps the beginning of what is written to it, and takes everything.
type opening struct {
	mu   sync.Mutex
	text []byte
}

func (t *opening) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxStderr-len(t.text))]...)
	return len(p), nil
}

func (t *opening) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
