// Package auth turns Kubernetes Secrets, ServiceAccounts and the clouds' identities into credentials; nothing else reads a Secret.
// It does not know what a credential is used for, nor how it is sent.
package auth

import (
	"context"
	"errors"
	"net/url"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// Secrets reads credentials out of Secrets.
type Secrets struct {
	reader client.Reader
	clouds *clouds
}

// Options tune how credentials are got. Zero values mean the defaults.
type Options struct {
	// ObjectLevelWorkloadIdentity allows an object to name the ServiceAccount that it logs in to a cloud as.
	// Default: not allowed.
	ObjectLevelWorkloadIdentity bool
	// Tokens issues the ServiceAccounts' tokens; ObjectLevelWorkloadIdentity needs it.
	Tokens client.SubResourceClientConstructor
	// MaxTokens is how many registry logins of clouds are kept. Default 100; negative keeps none.
	MaxTokens int
	// MaxTokenDuration bounds how long such a login is kept; it is kept for four fifths of its lifetime at most.
	// Default 1h.
	MaxTokenDuration time.Duration
	// LoginTimeout bounds one login to a cloud, whoever waits for it. Default 30s.
	LoginTimeout time.Duration
	// Clock tells when a login is too old. Default: the real one.
	Clock clock.PassiveClock
	// GoogleTokenHosts may exchange keys of service accounts for tokens, and AzureAuthorityHosts give tokens, beside those
	// that the clouds have themselves.
	GoogleTokenHosts, AzureAuthorityHosts []string
	// Transport makes the connections to GitHub's API and to what gives tokens. Default: one with the transport's defaults.
	Transport *transport.Factory
}

// New returns a reader of credentials. Secrets are read on each call, so that a rotated one counts from the next attempt
// on; give it a reader that does not keep all Secrets of the cluster in memory.
func New(reader client.Reader, options Options) Secrets {
	return Secrets{reader: reader, clouds: newClouds(options)}
}

// GitRequest is what a spec says about the way to a Git repository.
type GitRequest struct {
	Namespace string
	URL       string
	// SecretName is spec.secretRef's, ProxySecretName spec.proxySecretRef's with address, username and password.
	SecretName, ProxySecretName string
	// Provider is generic, github, azure or aws; empty means generic.
	Provider string
	// ServiceAccountName is the account that logs in to a cloud; empty means the controller's own.
	ServiceAccountName string
}

// Git returns the credential for a Git URL from Secrets of the namespace. The keys of the Secret are those of Flux:
//
//   - http, https: username and password, or bearerToken; ca.crt, or the older caFile; tls.crt and tls.key
//   - ssh: identity and known_hosts, both required; password opens an encrypted identity
//
// Without a Secret's name, or where the Secret says nothing about it, the user and password in the URL are used; of an
// ssh URL only the user, for a password has no place in it.
// A Secret may serve http and ssh URLs alike. Keys and certificates are parsed, so that a bad one is reported by its
// name and not as a failed connection.
//
// Errors carry a disposition: a Secret that is missing or bad is tried again, because it can be mended without an edit
// of the object that names it; a bad URL, or an ssh URL without a Secret, stalls. No error contains a value of the
// Secret, or of the URL's user and password.
func (s Secrets) Git(ctx context.Context, r GitRequest) (credential.Git, error) {
	clean, user, err := SplitURL(r.URL)
	if err != nil {
		return credential.Git{}, err
	}
	proxy, err := s.proxy(ctx, r.Namespace, r.ProxySecretName)
	if err != nil {
		return credential.Git{}, err
	}
	found := credential.Git{}
	switch r.Provider {
	case "", sourcev1.GitProviderGeneric:
		found, err = s.generic(ctx, r, schemeOf(clean), user)
	case sourcev1.GitProviderGitHub:
		found, err = s.github(ctx, r, schemeOf(clean), proxy)
	default:
		found, err = s.cloudGit(ctx, r, clean, proxy)
	}
	found.Proxy = proxy
	return found, err
}

// cloudGit logs in to a cloud. Of a Secret only certificates count beside that.
func (s Secrets) cloudGit(ctx context.Context, r GitRequest, clean string, proxy credential.Proxy) (found credential.Git, err error) {
	address, err := url.Parse(clean)
	if err != nil {
		return found, failure.Stall(sourcev1.URLInvalidReason, errors.New("spec.url cannot be parsed"))
	}
	if r.SecretName != "" {
		secret, err := s.read(ctx, r.Namespace, r.SecretName, fieldSecret, sourcev1.AuthenticationFailedReason)
		if err != nil {
			return found, err
		}
		if found.TLS, err = tlsCredential(secret); err != nil {
			return found, err
		}
	}
	account, err := s.account(ctx, r.Namespace, r.ServiceAccountName)
	if err == nil {
		err = s.mayLogIn(account, r.Provider, way{proxy: proxy, trusting: len(found.TLS.CA) > 0})
	}
	if err != nil {
		return found, err
	}
	login, err := s.clouds.login(ctx, loginRequest{provider: r.Provider, repository: address, account: account, proxy: proxy})
	found.Username, found.Password, found.BearerToken, found.Principal = login.username, login.password, login.bearer, login.principal
	return found, err
}

func (s Secrets) generic(ctx context.Context, r GitRequest, scheme string, user *url.Userinfo) (credential.Git, error) {
	if r.SecretName == "" {
		return fromURL(scheme, user)
	}
	secret, err := s.read(ctx, r.Namespace, r.SecretName, fieldSecret, sourcev1.AuthenticationFailedReason)
	if err != nil {
		return credential.Git{}, err
	}
	if err := secret.refuseApp(); err != nil {
		return credential.Git{}, err
	}
	if scheme == schemeSSH {
		return sshCredential(secret, user)
	}
	return httpCredential(secret, scheme, user)
}

// fromURL makes a credential of what the URL itself says.
func fromURL(scheme string, user *url.Userinfo) (credential.Git, error) {
	if scheme == schemeSSH {
		return credential.Git{}, errNoSSHSecret()
	}
	password, _ := user.Password()
	return credential.Git{Username: user.Username(), Password: credential.NewSecret(password)}, nil
}
