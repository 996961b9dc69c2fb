package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// maxClients is how many identities are remembered. A forgotten one is made again when it is asked for.
const maxClients = 1024

// discoveryTimeout bounds a look at the API server's kinds, which no caller's context reaches.
const discoveryTimeout = 30 * time.Second

// Options tune a Connector; the zero value works.
type Options struct {
	// Looks bounds how often the API server is asked for its kinds because one is not known; nil means once in 5 s, after
	// three in quick succession.
	Looks flowcontrol.PassiveRateLimiter
	// RequestTimeout is how long one request may take, with its repetitions when the API server is busy, and one page of a
	// list; 0 means a minute, after which the API server itself gives up. Watches have their own.
	RequestTimeout time.Duration
	// Observe is told the verb of every request as it leaves: apply, create, delete, patch, update, get, list, watch,
	// discover. It may be nil, and it is called from many goroutines.
	Observe func(verb string)
}

// Connector gives each identity its client. All share one set of connections and one list of the API server's kinds.
// It is safe for concurrent use.
type Connector struct {
	config  *rest.Config
	timeout time.Duration
	wire    http.RoundTripper
	mapper  *mapper
	system  *Client
	clients *lru.Cache[Identity, *Client]
}

// NewConnector makes a Connector. It asks the API server nothing yet. The configuration's own limits of requests are
// not used.
func NewConnector(config *rest.Config, options Options) (*Connector, error) {
	options.RequestTimeout = cmp.Or(options.RequestTimeout, time.Minute)
	options.Looks = cmp.Or(options.Looks, looks(clock.RealClock{}))
	wire, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	if options.Observe != nil {
		wire = &observed{next: wire, tell: options.Observe}
	}
	wire = &hasty{next: wire}
	clients, err := lru.New[Identity, *Client](maxClients)
	if err != nil {
		return nil, fmt.Errorf("remember clients: %w", err)
	}
	c := &Connector{config: configFor(config), timeout: options.RequestTimeout, wire: wire, clients: clients}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, &http.Client{Transport: wire, Timeout: discoveryTimeout})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	c.mapper = &mapper{kinds: kinds, tokens: options.Looks}
	if c.system, err = c.dial(Identity{}); err != nil {
		return nil, err
	}
	return c, nil
}

// configFor is what all clients share: the way bodies are read, and no limits of requests. These are left to the API
// server's priority and fairness, which queues every ServiceAccount by itself, so that a busy one does not delay the others.
func configFor(config *rest.Config) *rest.Config {
	shared := metadata.ConfigFor(config)
	shared.AcceptContentTypes = runtime.ContentTypeJSON // A metadata client has its own.
	shared.QPS, shared.Burst, shared.RateLimiter = -1, 0, nil
	if shared.WarningHandler == nil && shared.WarningHandlerWithContext == nil {
		// The default writes to a log of its own.
		shared.WarningHandler = rest.NoWarnings{}
	}
	shared.GroupVersion = &schema.GroupVersion{}
	shared.APIPath = "/"
	return shared
}

// As is the client of an identity. It asks the API server nothing, so that an account that does not exist shows only
// as ErrForbidden. A name that cannot be one, and half an identity, are ErrInvalid.
func (c *Connector) As(id Identity) (*Client, error) {
	if id == (Identity{}) {
		return c.system, nil
	}
	if client, ok := c.clients.Get(id); ok {
		return client, nil
	}
	// Colons or a missing part would make it the name of another user.
	wrong := append(validation.ValidateNamespaceName(id.Namespace, false), validation.ValidateServiceAccountName(id.ServiceAccount, false)...)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("work as ServiceAccount %q in namespace %q: %w: %s", id.ServiceAccount, id.Namespace, ErrInvalid, wrong[0])
	}
	client, err := c.dial(id)
	if err != nil {
		return nil, err
	}
	c.clients.Add(id, client)
	return client, nil
}

// Connect is what a watch of a kind needs to work as an identity.
func (c *Connector) Connect(id Identity, kind schema.GroupVersionKind) (metadata.Interface, *meta.RESTMapping, error) {
	client, err := c.As(id)
	if err != nil {
		return nil, nil, err
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return client.metadata, mapping, err
}

// Whole is what a watch of whole objects of a kind needs to work as an identity.
func (c *Connector) Whole(id Identity, kind schema.GroupVersionKind) (dynamic.Interface, *meta.RESTMapping, error) {
	client, err := c.As(id)
	if err != nil {
		return nil, nil, err
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, err
	}
	whole, err := dynamic.NewForConfigAndClient(c.config, client.wire)
	return whole, mapping, err
}

// Refresh makes the next kind that is not known be asked for at once: call it when a CRD has been established.
func (c *Connector) Refresh() { c.mapper.expect() }

func (c *Connector) dial(id Identity) (*Client, error) {
	wire := c.wire
	if id != (Identity{}) {
		// The API server adds the groups of a ServiceAccount by itself.
		wire = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: id.String()}, wire)
	}
	client := &http.Client{Transport: wire}
	plain, err := rest.RESTClientForConfigAndClient(c.config, client)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", id, err)
	}
	light, err := metadata.NewForConfigAndClient(c.config, client)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", id, err)
	}
	made := &Client{identity: id, timeout: c.timeout, mapper: c.mapper, rest: plain, metadata: light, wire: client, system: c.system}
	if id == (Identity{}) {
		made.system = made
	}
	return made, nil
}
