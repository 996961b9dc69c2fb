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
	"time"

	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const (
	sshPort          = "22"
	sshUser          = "git"
	handshakeTimeout = 30 * time.Second
	// lastWordsTimeout is how long a server may take to say why it said nothing.
	lastWordsTimeout = 2 * time.Second
	maxStderr        = 4096
	authHint         = "unable to authenticate" // x/crypto/ssh has no error value for it.
)

// sshPeer speaks with git-upload-pack over one SSH session: advertisement, questions and answers in one stream.
type sshPeer struct {
	conn      net.Conn
	client    *ssh.Client
	session   *ssh.Session
	stdin     io.WriteCloser
	stream    *bounded
	packets   *packetReader
	stderr    *opening
	advertise *advert
	release   func() bool
}

func (c *Client) dialSSH(ctx context.Context, to endpoint, as credential.Git, m *meter) (peer, error) {
	config, address, err := c.sshConfig(to, as.SSH)
	if err != nil {
		return nil, err
	}
	conn, err := c.options.Transport.Dial(ctx, address, as.Proxy)
	if err != nil {
		return nil, err
	}
	// A deadline on the connection would need the time of day; closing it when the context ends does not.
	p := &sshPeer{conn: conn, stderr: &opening{}, release: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	if err := p.open(ctx, config, address, to.repositoryPath()); err != nil {
		p.close(false)
		return nil, err
	}
	if err := p.readAdvert(ctx, c.options, m); err != nil {
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

// open authenticates and starts git-upload-pack.
func (p *sshPeer) open(ctx context.Context, config *ssh.ClientConfig, address, path string) error {
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, func() {
		if ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
			_ = p.conn.Close()
		}
	})
	defer stop()
	var trust error
	check := config.HostKeyCallback
	config.HostKeyCallback = func(address string, remote net.Addr, key ssh.PublicKey) error {
		trust = check(address, remote, key)
		return trust
	}
	conn, channels, requests, err := ssh.NewClientConn(p.conn, address, config)
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
	if p.session, err = p.client.NewSession(); err != nil {
		return err
	}
	p.session.Stderr = p.stderr
	if p.stdin, err = p.session.StdinPipe(); err != nil {
		return err
	}
	// Servers may refuse the variable; they answer in version 0 then.
	_ = p.session.Setenv("GIT_PROTOCOL", "version=2")
	stdout, err := p.session.StdoutPipe()
	if err != nil {
		return err
	}
	p.stream = &bounded{in: stdout}
	return p.session.Start(service + " " + shellQuote(path))
}

func (p *sshPeer) readAdvert(ctx context.Context, options Options, m *meter) error {
	body := options.Transport.Body(struct {
		io.Reader
		io.Closer
	}{p.stream.in, p.conn})
	p.stream = newBounded(body, maxAdvertBytes, m)
	p.packets = newPacketReader(p.stream)
	var err error
	if p.advertise, err = readAdvert(p.packets, options.MaxRefs); err == nil {
		return nil
	}
	if !errors.Is(err, errEmptyAnswer) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err // The server goes on talking, and nobody listens.
	}
	if said := p.lastWords(ctx); said != "" {
		return explainRefusal(said, err)
	}
	return err
}

// lastWords waits a little for the end of the session, and returns what came on stderr.
func (p *sshPeer) lastWords(ctx context.Context) string {
	limited, cancel := context.WithTimeout(ctx, lastWordsTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = p.conn.Close() })
	defer stop()
	_ = p.stdin.Close()
	_ = p.session.Wait() // The status says less than the words.
	return p.stderr.String()
}

// explainRefusal reads in the words of a server why there was no advertisement. There is no code to go by: these
// are the words of Git, GitHub, GitLab, Gitea, Bitbucket and Azure DevOps.
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
	case contains("permission denied", "access denied", "unauthorized", "not authorized", "forbidden",
		"could not read from remote"):
		return fmt.Errorf("%w: server says %s", ErrAuthentication, said)
	default:
		return fmt.Errorf("%w; server says %s", err, said)
	}
}

func (p *sshPeer) advert() *advert { return p.advertise }

func (p *sshPeer) remembered() bool { return false }

func (p *sshPeer) ask(_ context.Context, question []byte, limit int64) (*packetReader, error) {
	p.stream.left, p.stream.limit = limit, limit
	if _, err := p.stdin.Write(question); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p.packets, nil // What was written is answered, even when that is an error: reading tells more.
}

func (p *sshPeer) close(bool) {
	p.release()
	if p.client != nil {
		_ = p.client.Close() // Nothing is under way any more.
	}
	_ = p.conn.Close()
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
