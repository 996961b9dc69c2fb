// Package git lists the refs of a remote repository, fetches commits from it, alone and together, and pushes new ones to it, over HTTP and SSH.
// It does not know how a ref is chosen, what becomes of a commit's files, or that Kubernetes exists.
//
// The wire protocol is Git's own, version 2 with a fallback to version 0; see gitprotocol-v2(5),
// gitprotocol-pack(5), gitprotocol-http(5) and gitformat-pack(5) in Git's documentation.
package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// Remote is a repository and what its server may ask for.
type Remote struct {
	// URL is http, https or ssh. Userinfo in it stands in for a user name and password that Credential lacks.
	URL        string
	Credential credential.Git
}

// Key names the repository and who sees it there: what was fetched from a remote may be shown where one of the same key is
// asked. It is a hash.
func (r Remote) Key() string {
	address, err := parseEndpoint(r.URL)
	if err != nil {
		return ""
	}
	place := *address.url
	place.Host = strings.ToLower(place.Host)
	place.Path, place.RawPath = strings.TrimSuffix(place.Path, "/"), strings.TrimSuffix(place.RawPath, "/")
	sum := sha256.Sum256([]byte(strings.Join([]string{place.String(), address.username, address.password, r.Credential.Identity()}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// secrets are the values that no error may contain.
func (r Remote) secrets() []credential.Secret {
	secrets := r.Credential.Secrets()
	if parsed, err := url.Parse(r.URL); err == nil && parsed.User != nil {
		password, _ := parsed.User.Password()
		inURL := credential.Git{Username: parsed.User.Username(), Password: credential.NewSecret(password)}
		secrets = append(secrets, inURL.Secrets()...)
	}
	return secrets
}

// Options tune a Client. Zero values mean the defaults; every limit is enforced while data streams in.
type Options struct {
	// Transport makes the connections. Required.
	Transport *transport.Factory
	// TempDir takes packs that are too large for memory. Default os.TempDir.
	TempDir string
	// MaxPackBytes bounds the pack of one fetch as it is sent. Default 512 MiB.
	MaxPackBytes int64
	// MaxUnpackedBytes bounds all objects of one fetch together, unpacked. Putting objects together again, while the
	// files are read, may take four times as many. Default 4 GiB.
	MaxUnpackedBytes int64
	// MaxObjectBytes bounds one object, unpacked. An object that takes part in deltas may have a quarter of it.
	// Default 128 MiB.
	MaxObjectBytes int64
	// MaxObjects bounds the objects of one fetch. Default 1,000,000.
	MaxObjects int
	// MaxRefs bounds the refs that a server may list in answer to one request. Default 200,000.
	MaxRefs int
	// MaxTreeDepth bounds the nesting of directories. Default 256.
	MaxTreeDepth int
	// MaxFiles bounds the entries of a commit's whole tree: files, links, submodules and directories.
	// Default 100,000.
	MaxFiles int
	// KexAlgorithms and HostKeyAlgorithms restrict what SSH negotiates. Default: those of golang.org/x/crypto/ssh.
	KexAlgorithms     []string
	HostKeyAlgorithms []string
	// CacheDir keeps what was fetched, so that the next commit costs what it changes, in MaxCacheBytes at most and a quarter of
	// that for one repository, beside what is being fetched. One process uses it at a time; it may be removed at any time.
	// Without it nothing is kept.
	CacheDir      string
	MaxCacheBytes int64
	// CacheFailed is told why something is not kept, which costs a larger fetch and nothing else. It may be nil.
	CacheFailed func(error)
	// Fetched is told how each commit was had. It may be nil.
	Fetched func(How)
	// Observe is told the bytes received by each ListRefs, Fetch and Push, also by failed ones. It may be nil.
	Observe func(bytes int64)
}

func (o Options) withDefaults() Options {
	o.TempDir = cmp.Or(o.TempDir, os.TempDir())
	o.MaxPackBytes = cmp.Or(o.MaxPackBytes, 512<<20)
	o.MaxUnpackedBytes = cmp.Or(o.MaxUnpackedBytes, 4<<30)
	o.MaxObjectBytes = cmp.Or(o.MaxObjectBytes, 128<<20)
	o.MaxObjects = cmp.Or(o.MaxObjects, 1_000_000)
	o.MaxRefs = cmp.Or(o.MaxRefs, 200_000)
	o.MaxTreeDepth = cmp.Or(o.MaxTreeDepth, 256)
	o.MaxFiles = cmp.Or(o.MaxFiles, 100_000)
	if o.Observe == nil {
		o.Observe = func(int64) {}
	}
	told := o.CacheFailed
	o.CacheFailed = func(err error) {
		if told != nil && !errors.Is(err, context.Canceled) { // Who gives up is no fault of the cache.
			told(err)
		}
	}
	if o.Fetched == nil {
		o.Fetched = func(How) {}
	}
	return o
}

// How says what a commit cost.
type How string

// The ways in which a commit is had.
const (
	// Whole is a fetch of all its files.
	Whole How = "whole"
	// Incremental is a fetch of what differs from commits in the cache.
	Incremental How = "incremental"
	// Selected is a fetch of the files that are needed alone, and of all trees.
	Selected How = "selected"
	// FromCache is no fetch.
	FromCache How = "cached"
)

func (o Options) packLimits() packLimits {
	return packLimits{objects: o.MaxObjects, object: o.MaxObjectBytes, delta: o.MaxObjectBytes / deltaShare, unpacked: o.MaxUnpackedBytes}
}

// Client talks to Git servers. It is safe for concurrent use.
type Client struct {
	options Options
	adverts *advertCache
	cache   *objectCache
	ssh     *sshConnections
	memo    *memo
	sights  *sights
	// sightings are answers of LastSeen.
	sightings *sightings
}

// New returns a Client.
func New(options Options) (*Client, error) {
	if options.Transport == nil {
		return nil, errors.New("git client needs a transport")
	}
	options = options.withDefaults()
	adverts, _ := lru.New[string, *advert](maxAdverts) // It fails for a size below one alone.
	known, _ := lru.New[place, facts](maxFacts)
	seen, _ := lru.New[sightKey, sight](maxSights)
	answers, _ := lru.New[sighting, string](maxSightings)
	return &Client{
		options: options, adverts: adverts, cache: newCache(options), ssh: newSSHConnections(), memo: known, sights: seen,
		sightings: answers,
	}, nil
}

// converse opens a conversation with the remote, of whose services it needs the one that gives, and runs talk in it. What a server advertised is remembered, so
// that a poll is one request; when talk is then answered in an unexpected way, it is tried once more on a fresh
// advertisement.
func (c *Client) converse(ctx context.Context, remote Remote, m *meter, talk func(peer) error) error {
	return c.converseWith(ctx, remote, uploadPack, m, talk)
}

func (c *Client) converseWith(ctx context.Context, remote Remote, s service, m *meter, talk func(peer) error) error {
	address, err := parseEndpoint(remote.URL)
	if err != nil {
		return err
	}
	for {
		p, err := c.connect(ctx, address, remote.Credential, s, m)
		if err != nil {
			return err
		}
		err = talk(p)
		remembered := p.remembered()
		p.close(err == nil)
		if err == nil || !remembered || !isUnexpected(err) || ctx.Err() != nil {
			return err
		}
		c.adverts.Remove(cacheKey(address, remote.Credential))
	}
}

func (c *Client) connect(ctx context.Context, to endpoint, as credential.Git, s service, m *meter) (peer, error) {
	if to.url.Scheme == "ssh" {
		return c.dialSSH(ctx, to, as, s, m)
	}
	return c.openHTTP(ctx, to, as, s, m)
}
