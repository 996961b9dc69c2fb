package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	fluxauth "github.com/fluxcd/pkg/auth"
	"github.com/fluxcd/pkg/auth/aws"
	"github.com/fluxcd/pkg/auth/azure"
	"github.com/fluxcd/pkg/auth/gcp"

	"sluice.dev/sluice/internal/credential"
)

// azureScope is what a token for Azure's storage is for.
const azureScope = "https://storage.azure.com/.default"

// anonymousFor is how long it counts that the controller is nobody for Azure.
const anonymousFor = 10 * time.Minute

// amazonBucket takes keys from a Secret, or those of the workload's identity.
func (s Secrets) amazonBucket(ctx context.Context, r BucketRequest, proxy credential.Proxy) (found credential.Bucket, err error) {
	if r.SecretName != "" {
		return s.s3Keys(ctx, r)
	}
	login, err := s.bucketLogin(ctx, r, proxy)
	found.AccessKey, found.SecretKey, found.SessionToken, found.Principal = login.username, login.password, login.bearer, login.principal
	return found, err
}

// bucketLogin logs in to the cloud as the account, or as the controller.
func (s Secrets) bucketLogin(ctx context.Context, r BucketRequest, proxy credential.Proxy) (granted, error) {
	account, err := s.account(ctx, r.Namespace, r.ServiceAccountName)
	if err == nil {
		err = s.mayLogIn(account, r.Provider, way{proxy: proxy, trusting: r.Insecure})
	}
	if err != nil {
		return granted{}, err
	}
	provider, err := providerOf(r.Provider)
	if err != nil {
		return granted{}, err
	}
	request := loginRequest{provider: r.Provider, registry: bucketHost(r), account: account, proxy: proxy}
	at := bucketSite(r)
	login, err := s.clouds.once(ctx, request.key(at.input), func(ctx context.Context) (granted, time.Time, error) {
		login, until, err := s.clouds.enter(ctx, provider, at, request)
		if err != nil && account == nil && r.Provider == azure.ProviderName && isNodeLocal(azure.ProviderName) {
			return granted{}, s.clouds.options.Clock.Now().Add(anonymousFor), nil
		}
		return login, until, err
	})
	if err != nil {
		return granted{}, request.failed(err)
	}
	return login, nil
}

// bucketHost is where a login is for, for errors.
func bucketHost(r BucketRequest) string {
	if r.Provider == gcp.ProviderName {
		return "storage.googleapis.com"
	}
	if address, err := url.Parse(r.Endpoint); err == nil && address.Host != "" {
		return address.Host
	}
	return r.Endpoint
}

// bucketSite is a storage as its provider sees it.
func bucketSite(r BucketRequest) site {
	at := site{input: "bucket " + r.Region}
	var options []fluxauth.Option
	switch r.Provider {
	case azure.ProviderName:
		options = append(options, fluxauth.WithScopes(azureScope))
	case aws.ProviderName:
		if r.Region != "" {
			options = append(options, fluxauth.WithSTSRegion(r.Region))
		}
		if r.STS != nil {
			at.input += " " + r.STS.Endpoint
			options = append(options, fluxauth.WithSTSEndpoint(r.STS.Endpoint))
		}
	}
	at.options = func() ([]fluxauth.Option, error) { return options, nil }
	at.exchange = func(_ context.Context, token fluxauth.Token, _ []fluxauth.Option) (granted, time.Time, error) {
		return bucketGrant(token)
	}
	return at
}

// bucketGrant takes a token as it is: storages take these themselves.
func bucketGrant(token fluxauth.Token) (granted, time.Time, error) {
	switch t := token.(type) {
	case *aws.Credentials:
		if t.AccessKeyId == nil || t.SecretAccessKey == nil || t.Expiration == nil {
			break
		}
		session := ""
		if t.SessionToken != nil {
			session = *t.SessionToken
		}
		until := *t.Expiration
		if until.IsZero() {
			until = time.Unix(1<<40, 0) // Keys of the environment have no end.
		}
		return granted{username: *t.AccessKeyId, password: credential.NewSecret(*t.SecretAccessKey), bearer: credential.NewSecret(session)}, until, nil
	case *azure.Token:
		return granted{bearer: credential.NewSecret(t.Token)}, t.ExpiresOn, nil
	case *gcp.Token:
		return granted{bearer: credential.NewSecret(t.AccessToken)}, t.Expiry, nil
	}
	return granted{}, time.Time{}, errors.New("the cloud's answer has no credential")
}

// azureDomains are those below which Azure's storage is, and nobody else's: a token for all of it may go there.
func azureDomains() []string {
	return []string{
		".blob.core.windows.net", ".blob.core.usgovcloudapi.net", ".blob.core.chinacloudapi.cn", ".blob.storage.azure.net",
	}
}

// mayHaveToken keeps a token of the cloud from whoever an object names in the cloud's place.
func mayHaveToken(endpoint string) error {
	address, err := url.Parse(endpoint)
	if err == nil && address.Scheme == schemeHTTPS && slices.ContainsFunc(azureDomains(), func(domain string) bool {
		return strings.HasSuffix(strings.ToLower(address.Hostname()), domain)
	}) {
		return nil
	}
	return fmt.Errorf("spec.endpoint is not https at one of Azure's own hosts (%s), to which alone a token of the workload's identity is sent; "+
		"use such a host, or a Secret in %s", strings.Join(azureDomains(), ", "), fieldSecret)
}
