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

// site is where a login is for, as its provider sees it.
type site struct {
	// input is what the login depends on beside the account.
	input string
	// options are what the provider needs for the token that the site takes.
	options func() ([]fluxauth.Option, error)
	// exchange gives the token for what lets in.
	exchange func(ctx context.Context, token fluxauth.Token, way []fluxauth.Option) (granted, time.Time, error)
}

// hostPattern is host[:port] and nothing that a URL would take for another part.
var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?$`)

// registrySite is a registry of the provider's, by its host[:port].
func registrySite(provider fluxauth.Provider, host string) (s site, err error) {
	of, able := provider.(fluxauth.ArtifactRegistryCredentialsProvider)
	switch {
	case !able:
		return s, errNoSite
	case !hostPattern.MatchString(host):
		// A login may be sent to the host, and the libraries look only at how it ends.
		return s, errors.New("it is no host")
	}
	s.options = func() ([]fluxauth.Option, error) { return of.GetAccessTokenOptionsForArtifactRepository(host) }
	s.exchange = func(ctx context.Context, token fluxauth.Token, way []fluxauth.Option) (granted, time.Time, error) {
		given, err := of.NewArtifactRegistryCredentials(ctx, s.input, token, way...)
		if err != nil {
			return granted{}, time.Time{}, fmt.Errorf("exchange the token at the registry: %w", err)
		}
		config, err := given.Authorization()
		if err != nil {
			return granted{}, time.Time{}, err
		}
		return granted{username: config.Username, password: credential.NewSecret(config.Password)}, given.ExpiresAt, nil
	}
	s.input, err = of.ParseArtifactRepository(host)
	return s, err
}

// gitSite is a repository of the provider's, by its URL without user and password. A token is going to be sent to its
// host: Azure's library takes any.
func gitSite(provider fluxauth.Provider, address *url.URL) (s site, err error) {
	of, able := provider.(fluxauth.GitCredentialsProvider)
	host := strings.ToLower(address.Host)
	switch {
	case !able:
		return s, errNoSite
	case address.Scheme != schemeHTTPS:
		return s, errors.New("its scheme is not https")
	case of.GetName() == azure.ProviderName && host != "dev.azure.com" && !strings.HasSuffix(host, ".visualstudio.com"):
		return s, errors.New("it is neither dev.azure.com nor below visualstudio.com")
	}
	s.options = func() ([]fluxauth.Option, error) { return of.GetAccessTokenOptionsForGitRepository(address) }
	s.exchange = func(ctx context.Context, token fluxauth.Token, way []fluxauth.Option) (granted, time.Time, error) {
		given, err := of.NewGitCredentials(ctx, s.input, token, way...)
		if err != nil {
			return granted{}, time.Time{}, fmt.Errorf("make a credential of the token: %w", err)
		}
		return granted{
			username: given.Username, password: credential.NewSecret(given.Password), bearer: credential.NewSecret(given.BearerToken),
		}, given.ExpiresAt, nil
	}
	s.input, err = of.ParseGitRepository(address)
	return s, err
}
