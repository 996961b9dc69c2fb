package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// s3 is a bucket behind an endpoint of S3.
type s3 struct {
	location Location
	way      way
	keys     *credentials.Credentials
	core     *minio.Core
}

func newS3(l Location, by way) (Bucket, error) {
	keys := credentials.NewStaticV4(l.Credential.AccessKey, l.Credential.SecretKey.Reveal(), l.Credential.SessionToken.Reveal())
	b := &s3{location: l, way: by, keys: keys}
	var err error
	if b.core, err = b.client(by, l.Region); err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", l.Endpoint, err)
	}
	if err := s3utils.CheckValidBucketName(l.Bucket); err != nil {
		return nil, fmt.Errorf("bucket name %q: %w", l.Bucket, err)
	}
	return b, nil
}

// client makes one request for each call: when to try again is not for the library to say.
func (b *s3) client(by http.RoundTripper, region string) (*minio.Core, error) {
	return minio.NewCore(b.location.Endpoint, &minio.Options{
		Creds: b.keys, Secure: !b.location.Insecure, Transport: by, Region: region, MaxRetries: 1,
	})
}

// List implements Bucket. The library's call takes no context, so that a client with a context of its own makes it; where the
// bucket is, is known by then.
func (b *s3) List(ctx context.Context, listing Listing) (Page, error) {
	ctx, heard := ask(ctx, true)
	region, err := b.core.GetBucketLocation(ctx, b.location.Bucket)
	if err != nil {
		return Page{}, b.refused(err, heard, false)
	}
	client, err := b.client(bound{b.way, ctx}, region)
	if err != nil {
		return Page{}, err
	}
	if s3utils.IsGoogleEndpoint(*client.EndpointURL()) {
		return b.listFirst(client, listing, heard)
	}
	found, err := client.ListObjectsV2(b.location.Bucket, listing.Prefix, "", listing.Token, "", listing.Most)
	if err != nil {
		return Page{}, b.refused(err, heard, false)
	}
	if found.Name == "" && len(found.Contents) == 0 {
		return Page{}, errNoListing
	}
	page := Page{Objects: objects(found.Contents)}
	if found.IsTruncated {
		page.Next = found.NextContinuationToken
	}
	return page, nil
}

// listFirst lists by the first version of the call, which is all that Google's endpoint has. A page follows a key.
func (b *s3) listFirst(client *minio.Core, listing Listing, heard *heard) (Page, error) {
	found, err := client.ListObjects(b.location.Bucket, listing.Prefix, listing.Token, "", listing.Most)
	if err != nil {
		return Page{}, b.refused(err, heard, false)
	}
	if found.Name == "" && len(found.Contents) == 0 {
		return Page{}, errNoListing
	}
	page := Page{Objects: objects(found.Contents)}
	if found.IsTruncated {
		if page.Next = found.NextMarker; page.Next == "" && len(page.Objects) > 0 {
			page.Next = page.Objects[len(page.Objects)-1].Key
		}
		if page.Next == "" {
			return Page{}, fmt.Errorf("%w: it goes on, and does not say where", ErrListing)
		}
	}
	return page, nil
}

func objects(found []minio.ObjectInfo) []Object {
	all := make([]Object, 0, len(found))
	for _, o := range found {
		all = append(all, Object{Key: o.Key, ETag: plainETag(o.ETag), Size: o.Size})
	}
	return all
}

// plainETag is the one form of an etag: quotes are of the header, and not of what it says.
func plainETag(etag string) string { return strings.Trim(etag, `"`) }

// Get implements Bucket.
func (b *s3) Get(ctx context.Context, object Object) (io.ReadCloser, error) {
	ctx, heard := ask(ctx, false)
	options := minio.GetObjectOptions{Checksum: true}
	if err := options.SetMatchETag(object.ETag); err != nil {
		return nil, fmt.Errorf("%w: it has no etag", ErrListing)
	}
	body, _, header, err := b.core.GetObject(ctx, b.location.Bucket, object.Key, options)
	if err != nil {
		return nil, b.refused(err, heard, true)
	}
	if got := plainETag(header.Get("ETag")); got != object.ETag {
		_ = body.Close() // Nothing in it is needed.
		return nil, fmt.Errorf("%w: etag %.64q was asked for, and %.64q came", ErrChanged, object.ETag, got)
	}
	return checked(body, object, s3Sums(object, header)), nil
}

// refused reads an error of the library. What the transport says is given as it is.
func (b *s3) refused(err error, heard *heard, object bool) error {
	said, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || said.StatusCode == 0 {
		return err
	}
	return refusal(said.StatusCode, said.Code, said.Message, heard.after(), object)
}

// Close implements Bucket: the library does not hold the keys any longer.
func (b *s3) Close() { b.keys.Expire() }
