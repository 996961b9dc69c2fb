package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// googleEndpoint is where Google's storage is, whatever an object says.
const googleEndpoint = "https://storage.googleapis.com"

// google is a bucket of Google Cloud Storage, by its JSON API: two calls of it are all that is needed.
// See https://cloud.google.com/storage/docs/json_api/v1/objects.
type google struct {
	base   string // of all objects of the bucket
	client *http.Client
	bearer func() string
}

func newGoogle(l Location, by way, endpoint string) (Bucket, error) {
	if l.Bucket == "" || strings.ContainsAny(l.Bucket, "/?#") {
		return nil, fmt.Errorf("bucket name %q is not one of Google's", l.Bucket)
	}
	return &google{
		base:   endpoint + "/storage/v1/b/" + url.PathEscape(l.Bucket) + "/o",
		client: unredirected(by),
		bearer: l.Credential.Bearer.Reveal,
	}, nil
}

// googleObject is an object as the API has it. Numbers of 64 bits are texts there.
type googleObject struct {
	Name       string `json:"name"`
	ETag       string `json:"etag"`
	Generation string `json:"generation"`
	Size       string `json:"size"`
}

// List implements Bucket.
func (g *google) List(ctx context.Context, listing Listing) (Page, error) {
	ctx, heard := ask(ctx, true)
	query := url.Values{"prefix": {listing.Prefix}, "fields": {"kind,items(name,etag,generation,size),nextPageToken"}}
	if listing.Token != "" {
		query.Set("pageToken", listing.Token)
	}
	if listing.Most > 0 {
		query.Set("maxResults", strconv.Itoa(listing.Most))
	}
	response, err := g.get(ctx, g.base+"?"+query.Encode(), nil, heard)
	if err != nil {
		return Page{}, err
	}
	defer func() { _ = response.Body.Close() }() // Reading told whether the data was good.
	var found struct {
		Kind  string         `json:"kind"`
		Items []googleObject `json:"items"`
		Next  string         `json:"nextPageToken"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return Page{}, fmt.Errorf("read the listing: %w", err)
	}
	if found.Kind != "storage#objects" {
		return Page{}, errNoListing
	}
	page := Page{Objects: make([]Object, 0, len(found.Items)), Next: found.Next}
	for _, item := range found.Items {
		size, err := strconv.ParseInt(item.Size, 10, 64)
		if err != nil {
			return Page{}, fmt.Errorf("%w: %.128q has no size", ErrListing, item.Name)
		}
		page.Objects = append(page.Objects, Object{Key: item.Name, ETag: plainETag(item.ETag), Generation: item.Generation, Size: size})
	}
	return page, nil
}

// Get implements Bucket.
func (g *google) Get(ctx context.Context, object Object) (io.ReadCloser, error) {
	ctx, heard := ask(ctx, false)
	if object.Generation == "" {
		return nil, fmt.Errorf("%w: %.128q has no generation", ErrListing, object.Key)
	}
	query := url.Values{"alt": {"media"}, "ifGenerationMatch": {object.Generation}}
	// What is stored compressed is not unpacked for whoever says that he can do so himself.
	stored := http.Header{"Accept-Encoding": {"gzip"}}
	response, err := g.get(ctx, g.base+"/"+url.PathEscape(object.Key)+"?"+query.Encode(), stored, heard)
	if err != nil {
		return nil, err
	}
	if got := response.Header.Get("X-Goog-Generation"); got != "" && got != object.Generation {
		_ = response.Body.Close() // Nothing in it is needed.
		return nil, ErrChanged
	}
	return checked(response.Body, object, googleSums(response.Header)), nil
}

// googleSums is the checksum that every object has. It is of what is stored, which is what was asked for.
func googleSums(header http.Header) []sum {
	for _, line := range header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			if text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
				return addSum(nil, "CRC32C", newCastagnoli(), text)
			}
		}
	}
	return nil
}

// get asks once. With a header it asks for an object.
func (g *google) get(ctx context.Context, address string, header http.Header, heard *heard) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	if token := g.bearer(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // It was only read.
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, ErrLimit) {
		return nil, err
	}
	if json.Unmarshal(text, &said) != nil {
		said.Error.Message = string(text)
	}
	return nil, refusal(response.StatusCode, "", said.Error.Message, heard.after(), header != nil)
}

// Close implements Bucket. There is nothing to let go of.
func (*google) Close() {}
