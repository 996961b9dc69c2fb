// Package transport makes every outgoing HTTP and SSH connection: dial policy, deadlines, TLS identity, proxies,
// redirects. It does not know what is fetched, nor what credentials mean beyond the origin they belong to.
package transport

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2"
)

const (
	// dialTimeout bounds name resolution and the TCP handshake, handshakeTimeout the TLS handshake.
	dialTimeout, handshakeTimeout = 10 * time.Second, 10 * time.Second
	// idleTimeout closes pooled connections that nobody used.
	idleTimeout = 90 * time.Second
)

// Options tune a Factory. Zero values mean the defaults.
type Options struct {
	// DeniedPrefixes are never dialled, in addition to the ranges of metadata services, which never are.
	DeniedPrefixes []netip.Prefix
	// AllowLoopback lets this machine's own addresses be dialled, which are not otherwise.
	AllowLoopback bool
	// ResponseHeaderTimeout bounds the wait for the response after the request is sent. Default 30s.
	ResponseHeaderTimeout time.Duration
	// StallTimeout bounds the wait for the next byte of a body. Default 30s.
	StallTimeout time.Duration
	// MaxIdentities is how many pairs of TLS identity and proxy keep a pool of connections. Default 256.
	MaxIdentities int
	// Proxy chooses the proxy of a request that has none of its own. Default: the environment, see http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
}

func (o Options) withDefaults() Options {
	o.ResponseHeaderTimeout = cmp.Or(o.ResponseHeaderTimeout, 30*time.Second)
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	o.MaxIdentities = cmp.Or(o.MaxIdentities, 256)
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	return o
}

// Factory makes clients that share connections by TLS identity and proxy. It is safe for concurrent use.
type Factory struct {
	options Options
	dialer  *net.Dialer
	policy  policy

	mu    sync.Mutex // held while a pool is made, so that there is one of each
	pools *lru.Cache[string, *pool]
}

// New returns a Factory.
func New(options Options) *Factory {
	options = options.withDefaults()
	p := newPolicy(options)
	// It fails for a size below one alone.
	pools, _ := lru.NewWithEvict(max(1, options.MaxIdentities), func(_ string, oldest *pool) { oldest.close() })
	return &Factory{
		options: options,
		policy:  p,
		dialer:  &net.Dialer{Timeout: dialTimeout, ControlContext: p.control},
		pools:   pools,
	}
}

// Close drops all pooled connections. Requests under way end by themselves.
func (f *Factory) Close() { f.pools.Purge() }

// pool returns the pool with the identity, made by create if there is none yet.
func (f *Factory) pool(identity string, create func() (*pool, error)) (*pool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.pools.Get(identity); ok {
		return known, nil
	}
	made, err := create()
	if err == nil {
		f.pools.Add(identity, made)
	}
	return made, err
}
