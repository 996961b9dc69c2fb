package bucket

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// Kind is the protocol that a storage speaks.
type Kind string

// The kinds of storages.
const (
	S3     Kind = "s3"
	Google Kind = "google"
	Azure  Kind = "azure"
)

// Location is where a bucket is, and who asks.
type Location struct {
	Kind Kind
	// Endpoint is host or host:port for S3 and a URL for Azure. Google's is known.
	Endpoint string
	// Bucket is the name of the bucket, or of the container.
	Bucket string
	// Region is where the bucket is; the storage is asked where it is empty.
	Region string
	// Insecure speaks plain HTTP.
	Insecure   bool
	Credential credential.Bucket
}

// Identity names the bucket and who asks: what was fetched from one location may be shown to an equal one.
func (l Location) Identity() string { return l.key() + " " + l.Credential.Identity() }

func (l Location) key() string {
	return fmt.Sprintf("%q", []string{string(l.Kind), l.Endpoint, l.Bucket, l.Region, fmt.Sprint(l.Insecure)})
}

// maxClients is how many clients are kept.
const maxClients = 256

// Options are what Clients work with. Transport is required; zero values of the others mean the defaults.
type Options struct {
	Transport *transport.Factory
	// GoogleEndpoint is where Google's storage is. Default https://storage.googleapis.com.
	GoogleEndpoint string
	// Observe is told how many bytes came in.
	Observe func(int64)
}

// Clients opens buckets. Those of the same location and credential share a client, for as long as it is kept.
type Clients struct {
	options Options

	mu   sync.Mutex // held while a client is made, so that there is one of each
	kept *lru.Cache[string, Bucket]
}

// New returns Clients.
func New(options Options) *Clients {
	options.GoogleEndpoint = cmp.Or(options.GoogleEndpoint, googleEndpoint)
	if options.Observe == nil {
		options.Observe = func(int64) {}
	}
	// It fails for a size below one alone.
	kept, _ := lru.NewWithEvict(maxClients, func(_ string, oldest Bucket) { oldest.Close() })
	return &Clients{options: options, kept: kept}
}

// Open gives the bucket at a location. Nothing is asked yet; the error is about the location itself.
func (c *Clients) Open(_ context.Context, l Location) (Bucket, error) {
	key := l.key() + " " + l.Credential.Session()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.kept.Get(key); ok {
		return known, nil
	}
	made, err := c.open(l)
	if err != nil {
		return nil, transport.SafeError(err, l.Credential.Secrets()...)
	}
	made = scrubbed{made, l.Credential.Secrets()}
	c.kept.Add(key, made)
	return made, nil
}

func (c *Clients) open(l Location) (Bucket, error) {
	by := way{factory: c.options.Transport, tls: l.Credential.TLS, proxy: l.Credential.Proxy, observe: c.options.Observe}
	switch l.Kind {
	case S3:
		return newS3(l, by)
	case Google:
		return newGoogle(l, by, c.options.GoogleEndpoint)
	case Azure:
		return newAzure(l, by)
	}
	return nil, fmt.Errorf("no storage of kind %q is known", l.Kind)
}

// Close drops all clients.
func (c *Clients) Close() { c.kept.Purge() }
