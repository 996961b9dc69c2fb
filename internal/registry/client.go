// Package registry reads from OCI registries: tags, manifests, blobs and referrers, each bounded and checked. It also pushes.
// It does not know which tag is wanted, what a layer holds, or that Kubernetes exists.
//
// The protocol is the OCI Distribution Specification 1.1, with the token authentication of the CNCF Distribution
// project; the documents are those of the OCI Image Specification 1.1 and of Docker's image manifest version 2,
// schema 2.
package registry

import (
	"cmp"
	"errors"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const (
	// maxSessions is how many pairs of registry and identity keep their tokens.
	maxSessions = 256
	// maxTagLists is how many lists of tags are kept beside their ETag.
	maxTagLists = 256
)

// Repository is a place in a registry, and what the registry may ask for.
type Repository struct {
	// Host is host[:port], as Parse returns it.
	Host string
	// Name is the path of the repository, as Parse returns it.
	Name string
	// Insecure allows plain http where the registry does not speak TLS.
	Insecure   bool
	Credential credential.Registry
	// Push asks for the right to push as well. Token servers give the right to read alone otherwise.
	Push bool
}

// Options tune a Client. Zero values mean the defaults; every limit is enforced while data streams in.
type Options struct {
	// Transport makes the connections. Required.
	Transport *transport.Factory
	// Clock reads Retry-After dates. Default: the system's.
	Clock clock.PassiveClock
	// MaxManifestBytes bounds one manifest or index, and all pages of a list of referrers together. Default 4 MiB.
	MaxManifestBytes int64
	// MaxBlobBytes bounds one blob. Default 1 GiB.
	MaxBlobBytes int64
	// MaxTags bounds the tags of a repository. Default 100,000.
	MaxTags int
	// MaxTagListBytes bounds all pages of a list of tags together. Default 32 MiB.
	MaxTagListBytes int64
	// MaxReferrers bounds the referrers of the wanted type that one manifest may have. Default 50.
	MaxReferrers int
	// RealmHosts are hosts, or host:port, that may hand out tokens for any registry.
	RealmHosts []string
	// Remedies are what errors tell to do. Default: the fields of our kinds.
	Remedies *Remedies
	// Observe is told the bytes received in the body of each answer. It may be nil.
	Observe func(bytes int64)
}

// Remedies are what errors tell to do, in the words of whoever reads them.
type Remedies struct {
	// Refused is for a credential that the registry does not take, Anonymous for none.
	Refused, Anonymous string
	// Repository is for a repository that is not there, Reference for a tag or digest, Place for either.
	Repository, Reference, Place string
	// Plain is for a registry that speaks plain HTTP.
	Plain string
}

func specRemedies() *Remedies {
	return &Remedies{
		Refused: "check spec.secretRef", Anonymous: "set spec.secretRef if the repository is private, and check spec.url",
		Repository: "check spec.url", Reference: "check spec.ref", Place: "check spec.url and spec.ref",
		Plain: "set spec.insecure if plain HTTP is meant",
	}
}

func (o Options) withDefaults() Options {
	if o.Remedies == nil {
		o.Remedies = specRemedies()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.MaxManifestBytes = cmp.Or(o.MaxManifestBytes, 4<<20)
	o.MaxBlobBytes = cmp.Or(o.MaxBlobBytes, 1<<30)
	o.MaxTags = cmp.Or(o.MaxTags, 100_000)
	o.MaxTagListBytes = cmp.Or(o.MaxTagListBytes, 32<<20)
	o.MaxReferrers = cmp.Or(o.MaxReferrers, 50)
	if o.Observe == nil {
		o.Observe = func(int64) {}
	}
	o.RealmHosts = slices.Clone(o.RealmHosts)
	return o
}

// Client talks to registries. Connections, tokens and lists are shared by equal credentials at the same registry, and
// by no others. It is safe for concurrent use.
type Client struct {
	options  Options
	sessions *lru.Cache[string, *session]
	schemes  *lru.Cache[string, string]
	lists    *lru.Cache[string, tagList]
}

// New returns a Client.
func New(options Options) (*Client, error) {
	if options.Transport == nil {
		return nil, errors.New("registry client needs a transport")
	}
	if options.MaxManifestBytes < 0 || options.MaxBlobBytes < 0 || options.MaxTags < 0 ||
		options.MaxTagListBytes < 0 || options.MaxReferrers < 0 {
		return nil, errors.New("registry client has a negative limit")
	}
	// These fail for a size below one alone.
	sessions, _ := lru.New[string, *session](maxSessions)
	schemes, _ := lru.New[string, string](maxSessions)
	lists, _ := lru.New[string, tagList](maxTagLists)
	return &Client{options: options.withDefaults(), sessions: sessions, schemes: schemes, lists: lists}, nil
}
