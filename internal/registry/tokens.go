package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/internal/credential"
)

const (
	// maxTokens is how many repositories of one session keep their token.
	maxTokens = 256
	// maxToken bounds a token. Servers take headers of 8 to 16 KiB.
	maxToken = 16 << 10
)

// attempt is what one request used to authenticate, so that a token that was just refused is told from a newer one.
type attempt struct {
	token   string
	realm   string
	secrets []credential.Secret
}

func (a *attempt) use(token string) string {
	a.token = token
	secret := credential.NewSecret(token)
	if !slices.ContainsFunc(a.secrets, secret.Equal) {
		a.secrets = append(a.secrets, secret)
	}
	return token
}

type (
	attemptKey struct{}
	tokenKey   struct{}
)

func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{}
}

// isTokenRequest tells the requests for a token from those that need one.
func isTokenRequest(ctx context.Context) bool { return ctx.Value(tokenKey{}) != nil }

// tokens are those of one session. They are bounded, and those who need the same one wait for one request.
type tokens struct {
	mu      sync.Mutex
	scheme  auth.Scheme
	kept    *simplelru.LRU[string, string]
	flights singleflight.Group
}

func newTokens() *tokens {
	kept, _ := simplelru.NewLRU[string, string](maxTokens, nil) // It fails for a size below one alone.
	return &tokens{kept: kept}
}

// GetScheme returns how the registry authenticated the last time.
func (t *tokens) GetScheme(context.Context, string) (auth.Scheme, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scheme == auth.SchemeUnknown {
		return auth.SchemeUnknown, errdef.ErrNotFound
	}
	return t.scheme, nil
}

// GetToken returns the token kept for the scope.
func (t *tokens) GetToken(ctx context.Context, _ string, scheme auth.Scheme, scope string) (string, error) {
	token, ok := t.get(scheme, scope)
	if !ok {
		return "", errdef.ErrNotFound
	}
	return attemptOf(ctx).use(token), nil
}

func (t *tokens) get(scheme auth.Scheme, scope string) (token string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	token, ok = t.kept.Get(scope)
	return token, ok && t.scheme == scheme
}

// Set returns another token than the one that the attempt was refused with: one that arrived meanwhile, or a new one.
func (t *tokens) Set(
	ctx context.Context, _ string, scheme auth.Scheme, scope string, fetch func(context.Context) (string, error),
) (string, error) {
	for refused := attemptOf(ctx).token; ; {
		own := false
		flight := t.flights.DoChan(scope, func() (any, error) {
			own = true
			if token, ok := t.get(scheme, scope); ok && token != refused {
				return token, nil
			}
			return t.fetch(ctx, scheme, scope, refused, fetch)
		})
		select {
		case landed := <-flight:
			token, _ := landed.Val.(string)
			// Whoever gave up waiting failed alone, and a token that was on its way before ours was refused is no news.
			alone := errors.Is(landed.Err, context.Canceled) || errors.Is(landed.Err, context.DeadlineExceeded)
			switch {
			case landed.Err == nil && token != refused:
				return attemptOf(ctx).use(token), nil
			case landed.Err != nil && (own || !alone):
				return "", landed.Err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// fetch asks for a token, and keeps it if it is of use.
func (t *tokens) fetch(
	ctx context.Context, scheme auth.Scheme, scope, refused string, fetch func(context.Context) (string, error),
) (token string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			// Those who wait for it together are nobody's callers, so that nobody else would catch it.
			token, err = "", ownError{protocolErrorf("token server's answer cannot be read")}
		}
	}()
	token, err = fetch(context.WithValue(ctx, tokenKey{}, true))
	switch {
	case err != nil && scheme == auth.SchemeBasic:
		return "", ownError{fmt.Errorf("%w: registry asks for a user name and a password: check spec.secretRef", ErrAuthentication)}
	case err != nil:
		return "", err
	case len(token) > maxToken:
		return "", ownError{protocolErrorf("token server answers with a token of %d bytes, more than %d", len(token), maxToken)}
	case token == refused:
		return "", ownError{fmt.Errorf("%w: registry refuses the credential: check spec.secretRef", ErrAuthentication)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scheme != scheme {
		t.kept.Purge()
		t.scheme = scheme
	}
	t.kept.Add(scope, token)
	return token, nil
}
