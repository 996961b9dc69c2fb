// Package registry runs a real OCI registry, CNCF Distribution, for tests, demos and benches: with access modes
// and with faults that can be switched while it runs.
// It does not know who pulls from it; it needs no *testing.T, and nothing here reaches beyond loopback.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	"sluice.dev/sluice/tests/upstream"
)

// Options are what a Registry cannot change while it runs, and what it starts with.
type Options struct {
	// Address to listen on; 127.0.0.1:0 when empty.
	Address string
	// CA makes the registry speak TLS with a certificate for 127.0.0.1 and localhost.
	CA *upstream.CA
	// Identity makes the registry speak TLS with this certificate instead.
	Identity *upstream.Identity
	// ClientCA makes the registry refuse clients without a certificate of this authority. It needs TLS.
	ClientCA *upstream.CA
	// Dir is the folder to keep everything in; empty keeps it in memory. The referrers API knows only what was
	// pushed since the start, whichever it is.
	Dir string
	// Auth is what clients have to show; nothing when empty.
	Auth Auth
	// Users are passwords by user name. A user may pull, push and delete everywhere unless Permit says otherwise.
	Users map[string]string
	// Anonymous lets those without credentials pull, in the mode TokenAuth.
	Anonymous bool
}

// Registry is CNCF Distribution behind a port that counts requests and lets faults strike.
//
// A request passes, in this order: faults made by Fault.Early, the access check, all other faults, the function
// given to Before, and what changes answers for good (Serve, Alternate, page sizes, ETags, the referrers API).
type Registry struct {
	faults
	journal

	options Options
	port    *upstream.Port
	front   *site
	inner   *site
	client  *http.Client
	dir     string

	app       *application
	gate      *gate
	tokens    *TokenServer
	referrers *referrers

	mu       sync.Mutex
	manners  manners
	before   map[Kind]func()
	rewrites map[place]*rewrite
	blobs    []*BlobStore
}

// New starts a registry. It runs until Close, or until ctx is done.
func New(ctx context.Context, options Options) (*Registry, error) {
	r := &Registry{
		options: options, before: map[Kind]func(){}, rewrites: map[place]*rewrite{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	if err := r.start(ctx); err != nil {
		r.Close()
		return nil, fmt.Errorf("start registry: %w", err)
	}
	return r, nil
}

func (r *Registry) start(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "registry-")
	if err != nil {
		return err
	}
	r.dir = dir
	if r.app, err = newApplication(ctx, r.options.Dir); err != nil {
		return err
	}
	r.referrers = newReferrers(r.app)
	private, err := upstream.Listen(ctx, upstream.HTTPOptions{})
	if err != nil {
		return err
	}
	r.inner = serve(ctx, private, r.referrers.watch())
	r.port, err = upstream.Listen(ctx, upstream.HTTPOptions{
		Address: r.options.Address, CA: r.options.CA, Identity: r.options.Identity, ClientCA: r.options.ClientCA,
	})
	if err != nil {
		return err
	}
	if r.tokens, err = newTokenServer(r.Host(), r.options.Users, r.options.Anonymous); err != nil {
		r.port.Close()
		return err
	}
	if r.gate, err = newGate(r.dir, r.options, r.BaseURL()+tokenPath, r.tokens); err != nil {
		r.port.Close()
		return err
	}
	r.front = serve(ctx, r.port, http.HandlerFunc(r.serve))
	return nil
}

// Close stops the registry, breaks off the answers under way, and waits for them to end. What was kept in memory
// is gone.
func (r *Registry) Close() error {
	r.mu.Lock()
	blobs := r.blobs
	r.mu.Unlock()
	for _, store := range blobs {
		store.Close()
	}
	r.front.close()
	r.inner.close()
	r.client.CloseIdleConnections()
	r.app.close()
	if r.dir == "" {
		return nil
	}
	return os.RemoveAll(r.dir)
}

// Host is host:port, as credentials name it.
func (r *Registry) Host() string { return r.port.Addr().String() }

// BaseURL is scheme://host:port, without a slash at its end.
func (r *Registry) BaseURL() string { return r.port.URL() }

// URL is oci://host:port/name. It never holds credentials.
func (r *Registry) URL(name string) string { return "oci://" + r.Host() + "/" + name }

// CAPEM is the certificate of the authority that the registry was started with; nil without one.
func (r *Registry) CAPEM() []byte {
	if r.options.CA == nil {
		return nil
	}
	return r.options.CA.PEM()
}

// Tokens is the token server, which is served at /token in every mode.
func (r *Registry) Tokens() *TokenServer { return r.tokens }

// BytesOut counts the bytes that the registry has sent: headers and TLS included.
func (r *Registry) BytesOut() int64 { return r.port.BytesOut() }

// BytesIn counts the bytes that the registry has received.
func (r *Registry) BytesIn() int64 { return r.port.BytesIn() }

// Connections counts the connections accepted so far.
func (r *Registry) Connections() int { return r.port.Connections() }

// Reset forgets the requests so far, the token server's included, and sets all counters to zero. Faults stay.
func (r *Registry) Reset() {
	r.reset()
	r.tokens.reset()
	r.port.Reset()
}
