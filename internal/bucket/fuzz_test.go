package bucket_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/transport"
)

// FuzzListing: whatever a storage answers, a listing ends, and has what was asked for in order.
func FuzzListing(f *testing.F) {
	f.Add(byte(0), `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a</Key><ETag>"e"</ETag><Size>1</Size></Contents></ListBucketResult>`)
	f.Add(byte(0), `<ListBucketResult><Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>`)
	f.Add(byte(0), `<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>p/%2</Key><Size>-1</Size></Contents></ListBucketResult>`)
	f.Add(byte(1), `{"kind":"storage#objects","items":[{"name":"p/a","etag":"e","generation":"1","size":"1"}],"nextPageToken":"t"}`)
	f.Add(byte(1), `{"items":[null,{"name":"p/a","size":"x"}]}`)
	f.Add(byte(2), `<EnumerationResults><Blobs><Blob><Name>p/a</Name><Properties><Etag>0x8D</Etag><Content-Length>1</Content-Length></Properties></Blob></Blobs><NextMarker>t</NextMarker></EnumerationResults>`)
	f.Add(byte(2), `<EnumerationResults><Blobs><Blob><Name Encoded="true">p%2Fa</Name></Blob></Blobs></EnumerationResults>`)
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, answer) }))
	f.Cleanup(server.Close)
	all := bucket.New(bucket.Options{Transport: transport.New(transport.Options{AllowLoopback: true}), GoogleEndpoint: server.URL})
	f.Fuzz(func(t *testing.T, which byte, text string) {
		answer = text
		kind := kinds()[int(which)%3]
		l := bucket.Location{Kind: kind, Endpoint: strings.TrimPrefix(server.URL, "http://"), Bucket: "abc", Region: "r", Insecure: true}
		if kind == bucket.Azure {
			l.Endpoint = server.URL
		}
		b, err := all.Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := bucket.Gather(t.Context(), b, "p/", 1000, func(context.Context, bucket.Object) (bool, error) { return true, nil })
		if err != nil {
			return
		}
		for i, object := range found {
			if !strings.HasPrefix(object.Key, "p/") || object.Size < 0 || i > 0 && object.Key <= found[i-1].Key {
				t.Errorf("got %+v", found)
			}
		}
	})
}
