package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// gate is the feature gate of Options.ObjectLevelWorkloadIdentity, as Flux spells it.
const gate = "ObjectLevelWorkloadIdentity"

// clouds logs in to the registries and repositories of clouds and keeps the logins until they are old. Objects that need the same one
// share it, and while it is being made they wait for it together, each no longer than its own deadline.
type clouds struct {
	options Options
	logins  *lru.Cache[string, kept] // nil if none are kept
	flights singleflight.Group
}

// granted is what a login gives.
type granted struct {
	username         string
	password, bearer credential.Secret
	principal        string // whose login it is, also when it is made anew
}

// kept is a login and when it is to be made anew.
type kept struct {
	login granted
	until time.Time
}

// loginRequest is what a login depends on.
type loginRequest struct {
	provider string
	// registry is the host of a registry, repository the URL of a Git repository: one of the two is where it is for.
	registry   string
	repository *url.URL
	account    *corev1.ServiceAccount // nil for the controller itself
	proxy      credential.Proxy
}

func newClouds(options Options) *clouds {
	options.MaxTokens = cmp.Or(options.MaxTokens, 100)
	options.MaxTokenDuration = cmp.Or(options.MaxTokenDuration, time.Hour)
	options.LoginTimeout = cmp.Or(options.LoginTimeout, 30*time.Second)
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Transport == nil {
		options.Transport = transport.New(transport.Options{})
	}
	c := &clouds{options: options}
	if options.MaxTokens > 0 {
		c.logins, _ = lru.New[string, kept](options.MaxTokens) // It fails for sizes below one alone.
	}
	return c
}

// login returns a login that is young enough, or makes one.
func (c *clouds) login(ctx context.Context, r loginRequest) (granted, error) {
	provider, err := providerOf(r.provider)
	if err != nil {
		return granted{}, failure.Stall(sourcev1.InvalidProviderConfigurationReason, err)
	}
	kind, find := "registries", func() (site, error) { return registrySite(provider, r.registry) }
	if r.repository != nil {
		kind, find = "Git repositories", func() (site, error) { return gitSite(provider, r.repository) }
	}
	at, err := find()
	if err != nil {
		return granted{}, failure.Stall(sourcev1.InvalidProviderConfigurationReason, fmt.Errorf(
			"spec.provider %s cannot log in to %s, which is none of its %s; use spec.provider generic, or another spec.url: %w",
			r.provider, transport.PrintableQuoted(r.where()), kind, transport.SafeError(err)))
	}
	login, err := c.once(ctx, r.key(at.input), func(ctx context.Context) (granted, time.Time, error) {
		return c.enter(ctx, provider, at, r)
	})
	if err != nil {
		return granted{}, r.failed(err)
	}
	return login, nil
}

// once gives a login that is kept, or makes one, for all who want it now.
func (c *clouds) once(ctx context.Context, key string, enter func(context.Context) (granted, time.Time, error)) (granted, error) {
	if found, ok := c.find(key); ok {
		return found, nil
	}
	flight := c.flights.DoChan(key, func() (_ any, err error) {
		defer func() {
			if problem := recover(); problem != nil {
				// Some of the libraries believe that an answer is complete. Nobody else catches it here.
				err = errors.New("the cloud's answer cannot be read")
			}
		}()
		// Whoever came first may leave; the others still wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.LoginTimeout)
		defer cancel()
		made, until, err := enter(ctx)
		if err != nil {
			return nil, err
		}
		made.principal = key
		c.keep(key, made, until)
		return made, nil
	})
	select {
	case <-ctx.Done():
		return granted{}, context.Cause(ctx)
	case landed := <-flight:
		if landed.Err != nil {
			return granted{}, landed.Err
		}
		login, _ := landed.Val.(granted) // The flight carries nothing else.
		return login, nil
	}
}

func (c *clouds) find(key string) (granted, bool) {
	if c.logins == nil {
		return granted{}, false
	}
	found, ok := c.logins.Get(key)
	return found.login, ok && c.options.Clock.Now().Before(found.until)
}

// keep remembers the login for four fifths of its life, which is when the kubelet replaces tokens as well.
func (c *clouds) keep(key string, login granted, expires time.Time) {
	now := c.options.Clock.Now()
	life := min(expires.Sub(now)/5*4, c.options.MaxTokenDuration)
	if c.logins != nil && life > 0 {
		c.logins.Add(key, kept{login: login, until: now.Add(life)})
	}
}

// key names all that a login depends on. The annotations of an account say who it is for the cloud.
func (r loginRequest) key(input string) string {
	parts := []string{r.provider, input, r.proxy.Identity()}
	if r.account != nil {
		parts = append(parts, r.account.Namespace, r.account.Name, string(r.account.UID))
		for _, name := range slices.Sorted(maps.Keys(r.account.Annotations)) {
			parts = append(parts, name, r.account.Annotations[name])
		}
	}
	return fmt.Sprintf("%q", parts)
}

// failed says who could not log in, where, and why.
func (r loginRequest) failed(err error) error {
	who := "the controller"
	if r.account != nil {
		who = fmt.Sprintf("service account '%s/%s'", r.account.Namespace, r.account.Name)
	}
	return failure.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf(
		"log in to '%s' as %s with spec.provider %s: %w", r.where(), who, r.provider, err))
}

func (r loginRequest) where() string {
	if r.repository != nil {
		return r.repository.String()
	}
	return r.registry
}
