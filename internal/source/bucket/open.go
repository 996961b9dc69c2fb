// Package bucket is the Bucket kind of source: a Bucket's spec in, the objects of a bucket out.
// It does not know how a storage is spoken to (package bucket of that name), nor what becomes of the objects.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

const (
	// maxFetches is how many objects are fetched at once for one Bucket.
	maxFetches = 16
	// maxRules is how many .sourceignore files are remembered, and maxKeptRules how long those are at most.
	maxRules, maxKeptRules = 256, 64 << 10
)

// Credentials reads the credentials that a spec refers to.
type Credentials interface {
	Bucket(ctx context.Context, request auth.BucketRequest) (credential.Bucket, error)
}

// Stored gives the artifact that is stored for an object now.
type Stored interface {
	Record(ctx context.Context, object storage.Object) (storage.Record, error)
	Open(ctx context.Context, path string) (storage.Body, error)
}

// Options are what an Opener works with. All are required but Limits, MaxObjects, TempDir and IndexDir.
type Options struct {
	Clients     *bucket.Clients
	Credentials Credentials
	Stored      Stored
	// Dir is the folder of the kind's artifacts, as paths spell it.
	Dir string
	// Cache keeps the bodies of objects that were fetched.
	Cache *bucket.Cache
	// Limits bound what is selected.
	Limits archive.Limits
	// MaxObjects is how many objects are listed. Default 200,000.
	MaxObjects int
	// TempDir holds the stored artifact while objects are taken from it; empty means the system's.
	TempDir string
	// IndexDir keeps what is known of the objects in artifacts; empty keeps nothing.
	IndexDir string
	// MaxIndexBytes bounds that. Default 64 MiB.
	MaxIndexBytes int64
}

// Opener opens sessions for Bucket objects.
type Opener struct {
	Options
	rules    *lru.Cache[string, string]
	together *together
}

// NewOpener returns an Opener.
func NewOpener(options Options) *Opener {
	options.MaxObjects = cmp.Or(options.MaxObjects, 200_000)
	options.MaxIndexBytes = cmp.Or(options.MaxIndexBytes, 64<<20)
	options.Limits.MaxBytes = cmp.Or(options.Limits.MaxBytes, archive.DefaultMaxBytes)
	options.Limits.MaxFiles = cmp.Or(options.Limits.MaxFiles, archive.DefaultMaxFiles)
	options.Limits.MaxPath = cmp.Or(options.Limits.MaxPath, archive.DefaultMaxPath)
	options.Limits.MaxDepth = cmp.Or(options.Limits.MaxDepth, archive.DefaultMaxDepth)
	rules, _ := lru.New[string, string](maxRules) // It fails for a size below one alone.
	return &Opener{options, rules, newTogether()}
}

// Open checks the spec and reads the credentials.
func (o *Opener) Open(ctx context.Context, obj *sourcev1.Bucket) (source.Session, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(sourcev1.FailedReason, errors.New(obj.Undecodable))
	}
	request := requestOf(obj)
	found, err := o.Credentials.Bucket(ctx, request)
	if err != nil {
		return nil, err
	}
	location := bucket.Location{
		Kind: kindOf(request.Provider), Endpoint: obj.Spec.Endpoint, Bucket: obj.Spec.BucketName, Region: obj.Spec.Region,
		Insecure: obj.Spec.Insecure, Credential: found,
	}
	opened, err := o.Clients.Open(ctx, location)
	if err != nil {
		return nil, failure.Retry(sourcev1.BucketOperationFailedReason, fmt.Errorf("spec of bucket '%s' is not usable: %w", obj.Spec.BucketName, err))
	}
	// An etag names a content in its own bucket alone.
	checksum, err := source.ConfigChecksum("bucket", []string{string(location.Kind), location.Endpoint, location.Bucket})
	return &session{
		opener: o, spec: obj.Spec, bucket: opened, identity: location.Identity(), checksum: checksum,
		object: storage.Object{Kind: o.Dir, Namespace: obj.Namespace, Name: obj.Name},
	}, err
}

// requestOf says where the object names credentials.
func requestOf(obj *sourcev1.Bucket) auth.BucketRequest {
	spec := obj.Spec
	request := auth.BucketRequest{
		Namespace: obj.Namespace, Provider: spec.GetProvider(), Endpoint: spec.Endpoint, Region: spec.Region,
		ServiceAccountName: spec.ServiceAccountName, Insecure: spec.Insecure,
	}
	if spec.SecretRef != nil {
		request.SecretName = spec.SecretRef.Name
	}
	if spec.CertSecretRef != nil {
		request.CertSecretName = spec.CertSecretRef.Name
	}
	if spec.ProxySecretRef != nil {
		request.ProxySecretName = spec.ProxySecretRef.Name
	}
	if sts := spec.STS; sts != nil {
		request.STS = &auth.STS{Provider: sts.Provider, Endpoint: sts.Endpoint}
		if sts.SecretRef != nil {
			request.STS.SecretName = sts.SecretRef.Name
		}
		if sts.CertSecretRef != nil {
			request.STS.CertSecretName = sts.CertSecretRef.Name
		}
	}
	return request
}

// kindOf is the protocol that a provider speaks.
func kindOf(provider string) bucket.Kind {
	switch provider {
	case sourcev1.GoogleBucketProvider:
		return bucket.Google
	case sourcev1.AzureBucketProvider:
		return bucket.Azure
	}
	return bucket.S3
}

// session is one reconcile of one Bucket.
type session struct {
	opener   *Opener
	object   storage.Object
	spec     sourcev1.BucketSpec
	bucket   bucket.Bucket
	identity string // of the bucket and of who asks
	checksum string

	// selected are the objects in the order of their keys, without the rules; rules is the file with these, nil without one.
	selected []bucket.Object
	rules    *bucket.Object
}

// explain gives an error of the storage the reason under which Flux's users look for it. An error that has one keeps it.
func explain(err error, format string, args ...any) error {
	if _, known := errors.AsType[*failure.Error](err); known {
		return err
	}
	err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	if status, ok := errors.AsType[*bucket.StatusError](err); ok && status.RetryAfter > 0 {
		return failure.RetryAfter(sourcev1.BucketOperationFailedReason, status.RetryAfter, err)
	}
	return failure.Retry(sourcev1.BucketOperationFailedReason, err)
}
