package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	fluxauth "github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/azure"

	"sluice.dev/sluice/internal/credential"
)

// errNoSite says that the cloud has nothing of the kind.
var errNoSite = errors.New("the provider has none")

// as is the provider with what it can do for a kind of site.
func as[T any](provider fluxauth.Provider) (T, error) {
	able, ok := provider.(T)
	if !ok {
		return able, errNoSite
	}
	return able, nil
}

// site is where a login is for.
type site interface {
	fmt.Stringer

	// kind is what it is one of, as messages say it.
	kind() string
	// input is what the login depends on beside the account; an error where the site is not the provider's.
	input(provider fluxauth.Provider) (string, error)
	// options are what the provider needs for the token that the site takes.
	options(provider fluxauth.Provider) ([]fluxauth.Option, error)
	// exchange gives the token for what lets in.
	exchange(ctx context.Context, provider fluxauth.Provider, input string, token fluxauth.Token, way []fluxauth.Option) (granted, time.Time, error)
}

// hostPattern is host[:port] and nothing that a URL would take for another part.
var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?$`)

// registrySite is a registry's host[:port].
type registrySite string

func (r registrySite) String() string { return string(r) }

func (registrySite) kind() string { return "registries" }

func (r registrySite) input(provider fluxauth.Provider) (string, error) {
	// A login may be sent to the host, and the libraries look only at how it ends.
	if !hostPattern.MatchString(string(r)) {
		return "", errors.New("it is no host")
	}
	of, err := as[fluxauth.ArtifactRegistryCredentialsProvider](provider)
	if err != nil {
		return "", err
	}
	return of.ParseArtifactRepository(string(r))
}

func (r registrySite) options(provider fluxauth.Provider) ([]fluxauth.Option, error) {
	of, err := as[fluxauth.ArtifactRegistryCredentialsProvider](provider)
	if err != nil {
		return nil, err
	}
	return of.GetAccessTokenOptionsForArtifactRepository(string(r))
}

func (r registrySite) exchange(
	ctx context.Context, provider fluxauth.Provider, input string, token fluxauth.Token, way []fluxauth.Option,
) (granted, time.Time, error) {
	of, err := as[fluxauth.ArtifactRegistryCredentialsProvider](provider)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	given, err := of.NewArtifactRegistryCredentials(ctx, input, token, way...)
	if err != nil {
		return granted{}, time.Time{}, fmt.Errorf("exchange the token at the registry: %w", err)
	}
	config, err := given.Authorization()
	if err != nil {
		return granted{}, time.Time{}, err
	}
	return granted{username: config.Username, password: credential.NewSecret(config.Password)}, given.ExpiresAt, nil
}

// gitSite is a repository's URL without user and password.
type gitSite struct{ *url.URL }

func (gitSite) kind() string { return "Git repositories" }

// input looks at the host, which a token is going to be sent to: Azure's library takes any.
func (g gitSite) input(provider fluxauth.Provider) (string, error) {
	of, err := as[fluxauth.GitCredentialsProvider](provider)
	if err != nil {
		return "", err
	}
	if g.Scheme != schemeHTTPS {
		return "", errors.New("its scheme is not https")
	}
	if host := strings.ToLower(g.Host); of.GetName() == azure.ProviderName && host != "dev.azure.com" && !strings.HasSuffix(host, ".visualstudio.com") {
		return "", errors.New("it is neither dev.azure.com nor below visualstudio.com")
	}
	return of.ParseGitRepository(g.URL)
}

func (g gitSite) options(provider fluxauth.Provider) ([]fluxauth.Option, error) {
	of, err := as[fluxauth.GitCredentialsProvider](provider)
	if err != nil {
		return nil, err
	}
	return of.GetAccessTokenOptionsForGitRepository(g.URL)
}

func (g gitSite) exchange(
	ctx context.Context, provider fluxauth.Provider, input string, token fluxauth.Token, way []fluxauth.Option,
) (granted, time.Time, error) {
	of, err := as[fluxauth.GitCredentialsProvider](provider)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	given, err := of.NewGitCredentials(ctx, input, token, way...)
	if err != nil {
		return granted{}, time.Time{}, fmt.Errorf("make a credential of the token: %w", err)
	}
	return granted{given.Username, credential.NewSecret(given.Password), credential.NewSecret(given.BearerToken)}, given.ExpiresAt, nil
}
