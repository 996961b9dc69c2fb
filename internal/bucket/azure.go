package bucket

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // It is what Azure names bodies with; it proves nothing against an attacker.
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azure is a container of Azure Blob Storage.
type azure struct{ client *container.Client }

// newAzure logs in with what the credential has: a token, the account's key, a signature in the query, or nothing.
func newAzure(l Location, by way) (Bucket, error) {
	address, err := url.Parse(l.Endpoint)
	if err != nil || address.Hostname() == "" || address.Scheme != "https" && address.Scheme != "http" || address.User != nil {
		return nil, errors.New("endpoint is not scheme://host with scheme https or http")
	}
	if l.Bucket == "" || strings.ContainsAny(l.Bucket, "/?#") {
		return nil, fmt.Errorf("bucket name %q is not one of a container", l.Bucket)
	}
	address = address.JoinPath(l.Bucket)
	if signature := strings.TrimPrefix(l.Credential.Query.Reveal(), "?"); signature != "" {
		address.RawQuery = strings.TrimPrefix(address.RawQuery+"&"+signature, "&")
	}
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		// When to try again is not for the library to say.
		Transport: unredirected(by),
		Retry:     policy.RetryOptions{MaxRetries: -1},
	}}
	switch c := l.Credential; {
	case !c.AccountKey.IsZero():
		key, err := container.NewSharedKeyCredential(c.Account, c.AccountKey.Reveal())
		if err != nil {
			return nil, errors.New("the account's key is no base64")
		}
		return asAzure(container.NewClientWithSharedKeyCredential(address.String(), key, options))
	case !c.Bearer.IsZero():
		return asAzure(container.NewClient(address.String(), token(c.Bearer.Reveal()), options))
	}
	return asAzure(container.NewClientWithNoCredential(address.String(), options))
}

func asAzure(client *container.Client, err error) (Bucket, error) { return &azure{client}, err }

// token is one that was got before.
type token string

// GetToken implements azcore.TokenCredential. Whoever got the token knows when it ends.
func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Unix(1<<40, 0)}, nil
}

// List implements Bucket.
func (a *azure) List(ctx context.Context, listing Listing) (Page, error) {
	ctx, heard := ask(ctx, true)
	// It would send 5,000 otherwise, which may be more than is taken at once.
	most := int32(min(cmp.Or(listing.Most, maxPerPage), maxPerPage)) //nolint:gosec // It is a small number.
	options := &container.ListBlobsFlatOptions{Prefix: &listing.Prefix, MaxResults: &most}
	if listing.Token != "" {
		options.Marker = &listing.Token
	}
	found, err := a.client.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return Page{}, a.refused(err, heard, false)
	}
	if found.Segment == nil {
		return Page{}, errNoListing
	}
	page := Page{Objects: make([]Object, 0, len(found.Segment.BlobItems))}
	for _, item := range found.Segment.BlobItems {
		if item == nil || item.Name == nil || item.Properties == nil || item.Properties.ETag == nil || item.Properties.ContentLength == nil {
			return Page{}, fmt.Errorf("%w: an entry has no name, etag or size", ErrListing)
		}
		key := *item.Name
		if kind := item.Properties.ResourceType; kind != nil && *kind == "directory" {
			key += "/" // That is what stands for a folder where there are none.
		}
		page.Objects = append(page.Objects, Object{
			Key: key, ETag: plainETag(string(*item.Properties.ETag)), Size: *item.Properties.ContentLength,
		})
	}
	if found.NextMarker != nil {
		page.Next = *found.NextMarker
	}
	return page, nil
}

// Get implements Bucket. The library's etags are as headers have them.
func (a *azure) Get(ctx context.Context, object Object) (io.ReadCloser, error) {
	ctx, heard := ask(ctx, false)
	quoted := azcore.ETag(`"` + object.ETag + `"`)
	response, err := a.client.NewBlobClient(object.Key).DownloadStream(ctx, &blob.DownloadStreamOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &quoted}},
	})
	if err != nil {
		return nil, a.refused(err, heard, true)
	}
	if response.ETag == nil || plainETag(string(*response.ETag)) != object.ETag {
		_ = response.Body.Close() // Nothing in it is needed.
		return nil, ErrChanged
	}
	var sums []sum
	if len(response.ContentMD5) == md5.Size {
		sums = append(sums, sum{"MD5", md5.New(), response.ContentMD5}) //nolint:gosec // It is what Azure says of the body.
	}
	return checked(response.Body, object, sums), nil
}

// refused reads an error of the library, whose own text repeats the request with all that is signed in it.
func (a *azure) refused(err error, heard *heard, object bool) error {
	said, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return err
	}
	return refusal(said.StatusCode, said.ErrorCode, "", heard.after(), object)
}

// Close implements Bucket. There is nothing to let go of.
func (*azure) Close() {}
