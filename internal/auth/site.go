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

func (registrySite) of(provider fluxauth.Provider) (fluxauth.ArtifactRegistryCredentialsProvider, error) {
	if found, ok := provider.(fluxauth.ArtifactRegistryCredentialsProvider); ok {
		return found, nil
	}
	return nil, errNoSite
}

func (r registrySite) input(provider fluxauth.Provider) (string, error) {
	// A login may be sent to the host, and the libraries look only at how it ends.
	if !hostPattern.MatchString(string(r)) {
		return "", errors.New("it is no host")
	}
	of, err := r.of(provider)
	if err != nil {
		return "", err
	}
	return of.ParseArtifactRepository(string(r))
}

func (r registrySite) options(provider fluxauth.Provider) ([]fluxauth.Option, error) {
	of, err := r.of(provider)
	if err != nil {
		return nil, err
	}
	return of.GetAccessTokenOptionsForArtifactRepository(string(r))
}

func (r registrySite) exchange(
	ctx context.Context, provider fluxauth.Provider, input string, token fluxauth.Token, way []fluxauth.Option,
) (granted, time.Time, error) {
	of, err := r.of(provider)
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

func (gitSite) of(provider fluxauth.Provider) (fluxauth.GitCredentialsProvider, error) {
	if found, ok := provider.(fluxauth.GitCredentialsProvider); ok {
		return found, nil
	}
	return nil, errNoSite
}

// input looks at the host, which a token is going to be sent to: Azure's library takes any.
func (g gitSite) input(provider fluxauth.Provider) (string, error) {
	of, err := g.of(provider)
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
	of, err := g.of(provider)
	if err != nil {
		return nil, err
	}
	return of.GetAccessTokenOptionsForGitRepository(g.URL)
}

func (g gitSite) exchange(
	ctx context.Context, provider fluxauth.Provider, input string, token fluxauth.Token, way []fluxauth.Option,
) (granted, time.Time, error) {
	of, err := g.of(provider)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	given, err := of.NewGitCredentials(ctx, input, token, way...)
	if err != nil {
		return granted{}, time.Time{}, fmt.Errorf("make a credential of the token: %w", err)
	}
	return granted{given.Username, credential.NewSecret(given.Password), credential.NewSecret(given.BearerToken)}, given.ExpiresAt, nil
}
