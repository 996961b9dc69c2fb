package auth

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fluxcd/pkg/auth/aws"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

const (
	// maxSTSAnswer bounds what an STS or another giver of tokens says.
	maxSTSAnswer = 64 << 10
	// defaultSTSLife is how long keys count that come without an end.
	defaultSTSLife = 15 * time.Minute
)

// stsURL is where temporary keys are asked for.
func stsURL(endpoint string) (*url.URL, error) {
	address, err := url.Parse(endpoint)
	if err != nil || address.Hostname() == "" || address.Scheme != schemeHTTP && address.Scheme != schemeHTTPS || address.User != nil {
		// The parser's error quotes what it stumbles over.
		return nil, failure.Stall(sourcev1.URLInvalidReason, errors.New("failed to parse STS endpoint: spec.sts.endpoint is not http(s)://host without user and password"))
	}
	return address, nil
}

// checkAmazonSTS refuses an endpoint that Amazon's library would refuse later.
func checkAmazonSTS(endpoint string) error {
	if err := aws.ValidateSTSEndpoint(endpoint); err != nil {
		return failure.Stall(sourcev1.URLInvalidReason, fmt.Errorf("spec.sts.endpoint: %w", transport.SafeError(err)))
	}
	return nil
}

// ldapLogin exchanges user and password for temporary keys, see AssumeRoleWithLDAPIdentity in MinIO's documentation. Objects
// that log in as the same share the keys.
func (s Secrets) ldapLogin(ctx context.Context, r BucketRequest, proxy credential.Proxy) (granted, error) {
	address, err := stsURL(r.STS.Endpoint)
	if err != nil {
		return granted{}, err
	}
	tls, err := s.bucketTLS(ctx, r.Namespace, r.STS.CertSecretName, fieldSTSCert)
	if err != nil {
		return granted{}, err
	}
	form := url.Values{"Action": {"AssumeRoleWithLDAPIdentity"}, "Version": {"2011-06-15"}}
	var password credential.Secret
	if r.STS.SecretName != "" {
		found, err := s.bucketSecret(ctx, r.Namespace, r.STS.SecretName, fieldSTSSecret)
		if err != nil {
			return granted{}, err
		}
		if !found.has(keyUsername) || !found.has(keyPassword) {
			return granted{}, invalid("invalid '%s' secret data for 'ldap' STS provider: required fields %s, %s", r.STS.SecretName, keyUsername, keyPassword)
		}
		password = credential.NewSecret(found.data[keyPassword])
		form.Set("LDAPUsername", string(found.data[keyUsername]))
		form.Set("LDAPPassword", password.Reveal())
	}
	client, err := s.clouds.options.Transport.HTTP(address, tls, proxy)
	if err != nil {
		return granted{}, invalid("failed to get STS TLS config: %w", transport.SafeError(err))
	}
	key := credential.Bucket{AccessKey: address.String() + " " + form.Get("LDAPUsername"), SecretKey: password, TLS: tls, Proxy: proxy}.Identity()
	login, err := s.clouds.once(ctx, key, func(ctx context.Context) (granted, time.Time, error) {
		return assumeRole(ctx, client, address, form, s.clouds.options.Clock.Now())
	})
	if err != nil {
		return granted{}, invalid("log in to the STS at %s with spec.sts.secretRef: %w", transport.PrintableQuoted(address.Host),
			safe(err, append(proxy.Secrets(), password)))
	}
	return login, nil
}

// assumeRole makes the one request. Redirects of it are not followed.
func assumeRole(ctx context.Context, client *http.Client, address *url.URL, form url.Values, now time.Time) (granted, time.Time, error) {
	var answer struct {
		Keys struct {
			AccessKey    string    `xml:"AccessKeyId"`
			SecretKey    string    `xml:"SecretAccessKey"`
			SessionToken string    `xml:"SessionToken"`
			Expiration   time.Time `xml:"Expiration"`
		} `xml:"AssumeRoleWithLDAPIdentityResult>Credentials"`
	}
	body, err := postForm(ctx, client, address.String(), form)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return granted{}, time.Time{}, errors.New("the answer is not that of an STS")
	}
	if answer.Keys.AccessKey == "" || answer.Keys.SecretKey == "" {
		return granted{}, time.Time{}, errors.New("the answer has no keys")
	}
	until := answer.Keys.Expiration
	if until.IsZero() {
		until = now.Add(defaultSTSLife)
	}
	return granted{
		username: answer.Keys.AccessKey, password: credential.NewSecret(answer.Keys.SecretKey), bearer: credential.NewSecret(answer.Keys.SessionToken),
	}, until, nil
}

// postForm makes one request to a giver of tokens, and reads no more of the answer than these have.
func postForm(ctx context.Context, client *http.Client, address string, form url.Values) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // The text around it repeats method and URL.
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // Reading told whether the data was good.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSTSAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answers %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	case len(body) > maxSTSAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxSTSAnswer)
	}
	return body, nil
}
