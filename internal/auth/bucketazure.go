package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azurecloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"sluice.dev/sluice/internal/credential"
)

// The keys of a Secret for Azure, as Flux spells them.
const (
	keyTenantID       = "tenantId"
	keyClientID       = "clientId"
	keyClientSecret   = "clientSecret"
	keyClientCert     = "clientCertificate"
	keyClientCertPass = "clientCertificatePassword"
	keyClientCertAll  = "clientCertificateSendChain"
	keyAccountKey     = "accountKey"
	keySAS            = "sasKey"
	keyAuthorityHost  = "authorityHost"
)

// azureAuthorities are those of Azure's clouds that give tokens.
func azureAuthorities() []string {
	return []string{"login.microsoftonline.com", "login.microsoftonline.us", "login.chinacloudapi.cn", "login.partner.microsoftonline.cn", "login.windows.net"}
}

// azureBucket takes what the Secret has, in Flux's order: a principal of the directory, a key of the account, a signature.
// Without a Secret it is the workload's identity or, where there is none, nobody.
func (s Secrets) azureBucket(ctx context.Context, r BucketRequest, proxy credential.Proxy) (found credential.Bucket, err error) {
	if r.SecretName == "" {
		return s.azureIdentity(ctx, r, proxy)
	}
	secret, err := s.bucketSecret(ctx, r.Namespace, r.SecretName, fieldSecret)
	if err != nil {
		return found, err
	}
	switch {
	case secret.has(keyTenantID) && secret.has(keyClientID) && (secret.has(keyClientSecret) || secret.has(keyClientCert)),
		secret.has(keyClientID) && !secret.has(keyTenantID):
		return s.azurePrincipal(ctx, r, secret, proxy)
	case secret.has(keyAccountKey):
		if found.Account, err = accountOfAzure(secret, r.Endpoint); err != nil {
			return found, err
		}
		key, err := secret.line(keyAccountKey, maxPassword)
		found.AccountKey = credential.NewSecret(key)
		return found, err
	case secret.has(keySAS):
		signature, err := secret.line(keySAS, maxPassword)
		if _, bad := url.ParseQuery(strings.TrimPrefix(signature, "?")); bad != nil && err == nil {
			err = secret.bad(keySAS, "is no query of a URL", "store the signature that Azure made")
		}
		found.Query = credential.NewSecret(signature)
		return found, err
	}
	return found, invalid("invalid '%s' secret data: requires a '%s' or '%s' field, a combination of '%s', '%s' and '%s', or '%s', '%s' and '%s'", r.SecretName,
		keyClientID, keyAccountKey, keyTenantID, keyClientID, keyClientSecret, keyTenantID, keyClientID, keyClientCert)
}

// accountOfAzure is the first label of the storage's host.
func accountOfAzure(found secret, endpoint string) (string, error) {
	address, err := url.Parse(endpoint)
	if err == nil {
		if labels := strings.Split(address.Hostname(), "."); len(labels) > 2 {
			return labels[0], nil
		}
	}
	return "", found.errorf("has '%s', which needs the account's name: spec.endpoint has to be a URL whose host begins with it, and has more than two labels", keyAccountKey)
}

// azureIdentity is the workload's. A token of the controller's is sent to Azure alone; elsewhere it is nobody.
func (s Secrets) azureIdentity(ctx context.Context, r BucketRequest, proxy credential.Proxy) (credential.Bucket, error) {
	if err := mayHaveToken(r.Endpoint); err != nil {
		if r.ServiceAccountName != "" {
			return credential.Bucket{}, invalid("%w", err)
		}
		return credential.Bucket{}, nil
	}
	login, err := s.bucketLogin(ctx, r, proxy)
	return credential.Bucket{Bearer: login.bearer, Principal: login.principal}, err
}

// azurePrincipal gets a token for a principal of the directory. What the process has at its node, a managed identity, is not
// the tenant's: its token is sent to Azure alone.
func (s Secrets) azurePrincipal(ctx context.Context, r BucketRequest, found secret, proxy credential.Proxy) (bucket credential.Bucket, err error) {
	managed := !found.has(keyTenantID)
	if managed {
		if err := mayHaveToken(r.Endpoint); err != nil {
			return bucket, invalid("%w", err)
		}
	}
	options, err := s.clouds.azureOptions(found, proxy)
	if err != nil {
		return bucket, err
	}
	identity := credential.Bucket{Account: r.Provider, Proxy: proxy}
	for _, key := range []string{keyTenantID, keyClientID, keyClientSecret, keyClientCert, keyClientCertPass, keyClientCertAll, keyAuthorityHost} {
		identity.Account += fmt.Sprintf(" %q", found.data[key])
	}
	login, err := s.clouds.once(ctx, identity.Identity(), func(ctx context.Context) (granted, time.Time, error) {
		principal, err := azureCredential(found, options)
		if err != nil {
			return granted{}, time.Time{}, err
		}
		token, err := principal.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureScope}})
		return granted{bearer: credential.NewSecret(token.Token)}, token.ExpiresOn, err
	})
	if err != nil {
		secrets := append(proxy.Secrets(), credential.NewSecret(found.data[keyClientSecret]), credential.NewSecret(found.data[keyClientCertPass]))
		return bucket, invalid("log in to Azure as the principal of secret '%s': %w", found.name, safe(err, secrets))
	}
	return credential.Bucket{Bearer: login.bearer, Principal: login.principal}, nil
}

// azureOptions says where tokens are asked for, and that our connections are used for that.
func (c *clouds) azureOptions(found secret, proxy credential.Proxy) (options azcore.ClientOptions, err error) {
	authority := azurecloud.AzurePublic.ActiveDirectoryAuthorityHost
	if found.has(keyAuthorityHost) {
		if authority, err = found.line(keyAuthorityHost, maxAddress); err != nil {
			return options, err
		}
	}
	address, err := url.Parse(authority)
	if err != nil || address.Scheme != schemeHTTPS || address.User != nil ||
		!slices.Contains(azureAuthorities(), address.Host) && !slices.Contains(c.options.AzureAuthorityHosts, address.Host) {
		return options, found.bad(keyAuthorityHost, "is not https at a host of Azure's",
			"take it out for the public cloud, or ask the operator to allow the host with --azure-authority-hosts")
	}
	client, err := c.options.Transport.HTTP(address, credential.TLS{}, proxy)
	if err != nil {
		return options, invalid("failed to get proxy URL: %w", err)
	}
	return azcore.ClientOptions{
		Cloud:     azurecloud.Configuration{ActiveDirectoryAuthorityHost: authority},
		Transport: boundedAnswers{client},
		Retry:     policy.RetryOptions{MaxRetries: -1},
	}, nil
}

// boundedAnswers bounds what a giver of tokens says.
type boundedAnswers struct{ client *http.Client }

// Do implements policy.Transporter.
func (b boundedAnswers) Do(request *http.Request) (*http.Response, error) {
	response, err := b.client.Do(request) //nolint:gosec // Where it goes was compared with a list.
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxSTSAnswer)
	return response, nil
}

// azureCredential makes what gets tokens. Errors of the libraries about certificates do not pass: they may quote these.
func azureCredential(found secret, options azcore.ClientOptions) (azcore.TokenCredential, error) {
	tenant, client := string(found.data[keyTenantID]), string(found.data[keyClientID])
	switch {
	case tenant == "":
		// The service is on the node, where nothing is an upstream: the library's own connections go there.
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(client)})
	case found.has(keyClientSecret):
		return azidentity.NewClientSecretCredential(tenant, client, string(found.data[keyClientSecret]),
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true})
	}
	certificates, key, err := azidentity.ParseCertificates(found.data[keyClientCert], found.data[keyClientCertPass])
	if err != nil {
		return nil, found.bad(keyClientCert, "is no certificate with its key, or the password is another one", "store both in PEM or PKCS #12")
	}
	return azidentity.NewClientCertificateCredential(tenant, client, certificates, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: options, DisableInstanceDiscovery: true,
		SendCertificateChain: string(found.data[keyClientCertAll]) == "1" || string(found.data[keyClientCertAll]) == "true",
	})
}
