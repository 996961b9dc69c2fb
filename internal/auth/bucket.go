package auth

import (
	"context"
	"fmt"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
)

// The fields of a Bucket that name a Secret, beside those that other kinds have too.
const (
	fieldSTSSecret = "spec.sts.secretRef" //nolint:gosec // The name of a field.
	fieldSTSCert   = "spec.sts.certSecretRef"
)

// The keys of a Secret for S3, as Flux spells them.
const (
	keyAccessKey = "accesskey"
	keySecretKey = "secretkey"
)

// BucketRequest says whose credential is wanted, for which bucket, and where an object names it. All names are of the
// object's own namespace; empty ones are not looked at.
type BucketRequest struct {
	Namespace string
	// Provider is generic, aws, gcp or azure; empty means generic.
	Provider string
	// Endpoint is spec.endpoint, Region spec.region.
	Endpoint, Region string
	// SecretName is spec.secretRef's, CertSecretName spec.certSecretRef's, ProxySecretName spec.proxySecretRef's.
	SecretName, CertSecretName, ProxySecretName string
	// ServiceAccountName is the account that logs in to a cloud; empty means the controller's own.
	ServiceAccountName string
	// STS is nil without spec.sts.
	STS *STS
	// Insecure says that the storage speaks plain HTTP.
	Insecure bool
}

// STS says where temporary keys are asked for.
type STS struct {
	Provider, Endpoint         string
	SecretName, CertSecretName string
}

// Bucket returns the credential for a bucket. A Secret counts before everything else; without one a generic bucket asks the
// STS, or is anonymous, and a cloud is logged in to.
//
// Errors carry a disposition: what is missing or malformed in a Secret is tried again, and so is a login that is refused; an
// STS that does not go with the provider stalls, and so does a ServiceAccount where ObjectLevelWorkloadIdentity is off.
// No error contains a value of a Secret or a token.
func (s Secrets) Bucket(ctx context.Context, r BucketRequest) (found credential.Bucket, err error) {
	if err := r.checkSTS(); err != nil {
		return found, err
	}
	proxy, err := s.proxy(ctx, r.Namespace, r.ProxySecretName)
	if err != nil {
		return found, explained(err, "failed to get proxy URL")
	}
	switch r.Provider {
	case sourcev1.AmazonBucketProvider:
		found, err = s.amazonBucket(ctx, r, proxy)
	case sourcev1.GoogleBucketProvider:
		found, err = s.googleBucket(ctx, r, proxy)
	case sourcev1.AzureBucketProvider:
		found, err = s.azureBucket(ctx, r, proxy)
	default:
		found, err = s.genericBucket(ctx, r, proxy)
	}
	found.Proxy = proxy
	return found, err
}

// checkSTS refuses what the schema refuses too, where that is not asked.
func (r BucketRequest) checkSTS() error {
	switch {
	case r.STS == nil:
		return nil
	case r.Provider == sourcev1.AmazonBucketProvider && r.STS.Provider == sourcev1.AmazonSTSProvider:
		return checkAmazonSTS(r.STS.Endpoint)
	case (r.Provider == "" || r.Provider == sourcev1.GenericBucketProvider) && r.STS.Provider == sourcev1.LDAPSTSProvider:
		_, err := stsURL(r.STS.Endpoint)
		return err
	}
	return failure.Stall(sourcev1.InvalidSTSConfigurationReason, fmt.Errorf(
		"STS provider '%s' is not supported for '%s' bucket provider", r.STS.Provider, r.Provider))
}

// genericBucket takes keys from a Secret or from an STS.
func (s Secrets) genericBucket(ctx context.Context, r BucketRequest, proxy credential.Proxy) (found credential.Bucket, err error) {
	if found.TLS, err = s.bucketTLS(ctx, r.Namespace, r.CertSecretName, fieldCert); err != nil {
		return found, err
	}
	if r.SecretName != "" {
		keys, err := s.s3Keys(ctx, r)
		keys.TLS = found.TLS
		return keys, err
	}
	if r.STS == nil {
		return found, nil
	}
	login, err := s.ldapLogin(ctx, r, proxy)
	found.AccessKey, found.SecretKey, found.SessionToken, found.Principal = login.username, login.password, login.bearer, login.principal
	return found, err
}

// s3Keys wants both keys.
func (s Secrets) s3Keys(ctx context.Context, r BucketRequest) (found credential.Bucket, err error) {
	secret, err := s.bucketSecret(ctx, r.Namespace, r.SecretName, fieldSecret)
	if err != nil {
		return found, err
	}
	if !secret.has(keyAccessKey) || !secret.has(keySecretKey) {
		return found, invalid("invalid '%s' secret data: required fields '%s' and '%s'", r.SecretName, keyAccessKey, keySecretKey)
	}
	if found.AccessKey, err = secret.line(keyAccessKey, maxName); err != nil {
		return found, err
	}
	key, err := secret.line(keySecretKey, maxPassword)
	found.SecretKey = credential.NewSecret(key)
	return found, err
}

// bucketSecret is read with the words of Flux before ours.
func (s Secrets) bucketSecret(ctx context.Context, namespace, name, field string) (secret, error) {
	found, err := s.read(ctx, namespace, name, field, sourcev1.AuthenticationFailedReason)
	what := "secret"
	if field == fieldSTSSecret {
		what = "STS secret"
	}
	return found, explained(err, "failed to get %s '%s/%s'", what, namespace, name)
}

// bucketTLS reads the Secret with certificates that the field names.
func (s Secrets) bucketTLS(ctx context.Context, namespace, name, field string) (credential.TLS, error) {
	if name == "" {
		return credential.TLS{}, nil
	}
	found, err := s.certificates(ctx, namespace, name, field)
	what := "TLS config"
	if field == fieldSTSCert {
		what = "STS TLS config"
	}
	return found, explained(err, "failed to get %s", what)
}

// explained says in Flux's words what the error is about; nil stays nil. It keeps what is to be done about it.
func explained(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	known := *failure.Of(err)
	known.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), known.Err)
	return &known
}

// invalid is about a Secret that can be mended.
func invalid(format string, args ...any) error {
	return failure.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf(format, args...))
}
