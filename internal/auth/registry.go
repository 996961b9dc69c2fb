package auth

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
)

// RegistryRequest says whose credential is wanted, for which repository, and where an object names it. All names are
// of the object's own namespace; empty ones are not looked at.
type RegistryRequest struct {
	Namespace string
	// Host is the registry's host[:port], Repository the path behind it.
	Host       string
	Repository string
	// SecretName is spec.secretRef's: a docker config.
	SecretName string
	// ServiceAccountName is the account with more docker configs, or the one that logs in to a cloud.
	ServiceAccountName string
	// CertSecretName is spec.certSecretRef's: tls.crt and tls.key, ca.crt.
	CertSecretName string
	// ProxySecretName is spec.proxySecretRef's: address, username, password.
	ProxySecretName string
	// Provider is generic, aws, azure or gcp; empty means generic.
	Provider string
	// Insecure accepts any certificate of the registry, unless there is a CertSecretName.
	Insecure bool
	// PlainLogin takes a Secret with username and password as well.
	PlainLogin bool
}

// Registry returns the credential for a repository of an OCI registry, as Flux finds it: in the docker configs of the
// Secret and of the ServiceAccount's image pull secrets, of which the most specific entry for the repository counts,
// and the Secret before the account where two are alike. Without an entry the credential is anonymous. Where there is
// no docker config at all, a provider that is a cloud is asked to log in.
//
// Errors carry a disposition: what is missing or malformed in a Secret or ServiceAccount is tried again, and so is a
// login that a cloud refuses; a registry that is not the cloud's, or a ServiceAccount that may not log in to a cloud
// because ObjectLevelWorkloadIdentity is off, stalls. No error contains a value of a Secret or a token.
func (s Secrets) Registry(ctx context.Context, r RegistryRequest) (credential.Registry, error) {
	tls, err := s.certificate(ctx, r)
	if err != nil {
		return credential.Registry{}, err
	}
	proxy, err := s.proxy(ctx, r.Namespace, r.ProxySecretName)
	if err != nil {
		return credential.Registry{}, err
	}
	account, err := s.account(ctx, r.Namespace, r.ServiceAccountName)
	if err != nil {
		return credential.Registry{}, err
	}
	pullSecrets, err := s.pullSecrets(ctx, r, account)
	if err != nil {
		return credential.Registry{}, err
	}
	var login credential.Registry
	if r.PlainLogin && len(pullSecrets) > 0 && pullSecrets[0].has(keyUsername, keyPassword) {
		plain, err := basicCredential(pullSecrets[0], credential.TLS{})
		return credential.Registry{Username: plain.Username, Password: plain.Password, TLS: tls, Proxy: proxy}, err
	}
	if len(pullSecrets) > 0 {
		login, err = dockerLogin(pullSecrets, r.Host, r.Repository)
	} else {
		login, err = s.cloudLogin(ctx, r, account, way{proxy: proxy, trusting: r.Insecure || len(tls.CA) > 0})
	}
	if err != nil {
		return credential.Registry{}, err
	}
	login.TLS, login.Proxy = tls, proxy
	return login, nil
}

// certificate reads what spec.certSecretRef names.
func (s Secrets) certificate(ctx context.Context, r RegistryRequest) (credential.TLS, error) {
	if r.CertSecretName == "" {
		return credential.TLS{SkipVerify: r.Insecure}, nil
	}
	return s.certificates(ctx, r.Namespace, r.CertSecretName, fieldCert)
}

// certificates reads the Secret with an authority and a client certificate that the field names.
func (s Secrets) certificates(ctx context.Context, namespace, name, field string) (credential.TLS, error) {
	found, err := s.read(ctx, namespace, name, field, sourcev1.AuthenticationFailedReason)
	if err != nil {
		return credential.TLS{}, err
	}
	if !found.has(keyCA, keyOldCA, keyCertificate, keyKey) {
		return credential.TLS{}, found.errorf("has no value under '%s', or '%s' and '%s'; add them, or remove %s",
			keyCA, keyCertificate, keyKey, field)
	}
	return tlsCredential(found)
}

// pullSecrets reads the Secret and the account's image pull secrets, in this order.
func (s Secrets) pullSecrets(ctx context.Context, r RegistryRequest, account *corev1.ServiceAccount) ([]secret, error) {
	var all []secret
	if r.SecretName != "" {
		found, err := s.read(ctx, r.Namespace, r.SecretName, fieldSecret, sourcev1.AuthenticationFailedReason)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	if account == nil {
		return all, nil
	}
	field := fmt.Sprintf("imagePullSecrets of service account '%s/%s'", account.Namespace, account.Name)
	for _, reference := range account.ImagePullSecrets {
		found, err := s.read(ctx, r.Namespace, reference.Name, field, sourcev1.AuthenticationFailedReason)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// cloudLogin asks the provider; generic has nobody to ask, and is anonymous.
func (s Secrets) cloudLogin(
	ctx context.Context, r RegistryRequest, account *corev1.ServiceAccount, by way,
) (credential.Registry, error) {
	if r.Provider == "" || r.Provider == sourcev1.GenericOCIProvider {
		return credential.Registry{}, nil
	}
	if err := s.mayLogIn(account, r.Provider, by); err != nil {
		return credential.Registry{}, err
	}
	login, err := s.clouds.login(ctx, loginRequest{provider: r.Provider, registry: r.Host, account: account, proxy: by.proxy})
	return credential.Registry{Username: login.username, Password: login.password}, err
}

// way is how an object reaches the site that a login is for.
type way struct {
	proxy credential.Proxy
	// trusting says that the object decides whom it takes for the site, and not the authorities of the system.
	trusting bool
}

// mayLogIn refuses an account that would log in to a cloud where the operator has not allowed that. And it does not let the
// controller log in where the object would see what it gets: whoever chooses both the proxy and who is trusted can stand in
// for the site.
func (s Secrets) mayLogIn(account *corev1.ServiceAccount, provider string, by way) error {
	switch {
	case account == nil && by.proxy.URL != "" && by.trusting:
		return failure.Retry(sourcev1.InvalidProviderConfigurationReason, fmt.Errorf(
			"spec.provider %s does not log in as the controller by a proxy of %s where the object decides which certificates are good; "+
				"take one of the two out, or name an account to log in as in %s", provider, fieldProxy, fieldServiceAccount))
	case account == nil || s.clouds.options.ObjectLevelWorkloadIdentity:
		return nil
	}
	return failure.Stall(sourcev1.FeatureGateDisabledReason, fmt.Errorf(
		"%s makes service account '%s/%s' log in with spec.provider %s, which the feature gate %s does not allow; "+
			"ask the operator to start the controller with --feature-gates=%s=true, or remove %s to log in as the controller",
		fieldServiceAccount, account.Namespace, account.Name, provider, gate, gate, fieldServiceAccount))
}
