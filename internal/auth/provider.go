package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	fluxauth "github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/aws"
	"github.com/fluxcd/pkg/auth/azure"
	"github.com/fluxcd/pkg/auth/gcp"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// errNoTokens says that the operator's settings do not go together.
var errNoTokens = errors.New("the controller has no means to issue tokens of service accounts")

// tokenPattern finds JSON web tokens in the words of a cloud, which may repeat what it was asked.
var tokenPattern = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`)

func providerOf(name string) (fluxauth.Provider, error) {
	switch name {
	case aws.ProviderName:
		return aws.Provider{}, nil
	case azure.ProviderName:
		return azure.Provider{}, nil
	case gcp.ProviderName:
		return gcp.Provider{}, nil
	}
	return nil, fmt.Errorf("spec.provider %s is not known; use generic, aws, azure or gcp", transport.PrintableQuoted(name))
}

// enter logs in: with a token of the account or the controller, for which the site lets in.
// The libraries' own cache is not used, because it has everybody wait for the login under way, whosever it is.
func (c *clouds) enter(
	ctx context.Context, provider fluxauth.Provider, at site, r loginRequest,
) (login granted, expires time.Time, err error) {
	secrets := r.proxy.Secrets()
	defer func() { err = safe(err, secrets) }()
	proxy, err := transport.ProxyURL(r.proxy)
	if err != nil {
		return login, expires, err
	}
	var way []fluxauth.Option
	if proxy != nil {
		way = append(way, fluxauth.WithProxyURL(*proxy))
	}
	token, sent, err := c.token(ctx, provider, at, r, way)
	secrets = append(secrets, sent...)
	if err != nil {
		return login, expires, err
	}
	return at.exchange(ctx, token, way)
}

// token proves who logs in. What was or will be sent on the way is returned as well, for redaction.
func (c *clouds) token(
	ctx context.Context, provider fluxauth.Provider, at site, r loginRequest, way []fluxauth.Option,
) (token fluxauth.Token, sent []credential.Secret, err error) {
	options, err := at.options()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case r.account != nil:
		token, sent, err = c.accountToken(ctx, provider, r, slices.Concat(way, options))
	case isNodeLocal(r.provider):
		// What the controller proves itself with there is not for a proxy that an object names.
		token, err = provider.NewControllerToken(ctx, options...)
	default:
		token, err = provider.NewControllerToken(ctx, slices.Concat(way, options)...)
	}
	if bearer, ok := token.(*azure.Token); ok && err == nil {
		sent = append(sent, credential.NewSecret(bearer.Token))
	}
	return token, sent, err
}

// accountToken has the cloud exchange a token of the account's, which is returned as well.
func (c *clouds) accountToken(
	ctx context.Context, provider fluxauth.Provider, r loginRequest, options []fluxauth.Option,
) (token fluxauth.Token, sent []credential.Secret, err error) {
	if c.options.Tokens == nil {
		return nil, nil, errNoTokens
	}
	if _, err := provider.GetIdentity(*r.account); err != nil {
		return nil, nil, fmt.Errorf("read its annotations: %w", err)
	}
	audiences, err := provider.GetAudiences(ctx, *r.account)
	if err != nil {
		return nil, nil, err
	}
	proof, err := issueToken(ctx, c.options.Tokens, r.account, audiences)
	if err != nil {
		return nil, nil, err
	}
	token, err = provider.NewTokenForServiceAccount(ctx, proof, *r.account, options...)
	return token, []credential.Secret{credential.NewSecret(proof)}, err
}

// safe makes the words of a cloud fit for any reader.
func safe(err error, secrets []credential.Secret) error {
	if err == nil {
		return nil
	}
	for _, token := range tokenPattern.FindAllString(err.Error(), -1) {
		secrets = append(secrets, credential.NewSecret(token))
	}
	return transport.SafeError(err, secrets...)
}

// isNodeLocal tells whether the controller gets its own identity from a service on its node, and not from files or
// variables that were given to it. The variables are those of the clouds' libraries.
func isNodeLocal(provider string) bool {
	given := map[string][]string{
		aws.ProviderName:   {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"},
		azure.ProviderName: {"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_USERNAME", "AZURE_FEDERATED_TOKEN_FILE"},
		gcp.ProviderName:   {"GOOGLE_APPLICATION_CREDENTIALS"},
	}
	return !slices.ContainsFunc(given[provider], func(name string) bool { return os.Getenv(name) != "" })
}
