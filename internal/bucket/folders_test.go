package bucket_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestFoldersOfAzureAreNoFiles: an account with a hierarchical namespace lists them beside what is in them, as
// https://learn.microsoft.com/rest/api/storageservices/list-blobs describes.
func TestFoldersOfAzureAreNoFiles(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
		_, _ = io.WriteString(w, `<?xml version="1.0"?><EnumerationResults><Blobs>
<Blob><Name>app</Name><Properties><Etag>0x1</Etag><ResourceType>directory</ResourceType><Content-Length>0</Content-Length></Properties></Blob>
<Blob><Name>app/a.yaml</Name><Properties><Etag>0x2</Etag><ResourceType>file</ResourceType><Content-Length>1</Content-Length></Properties></Blob>
</Blobs><NextMarker/></EnumerationResults>`)
		return true
	})
	all, _, err := gather(t.Context(), open(t, fake, bucket.Azure, credential.Bucket{}), 10)
	if err != nil || len(all) != 2 || all[0].Key != "app/" || all[1].Key != "app/a.yaml" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestLongNamesOfAzureFitIntoItsPages: it has pages of 5,000 unless it is asked for less, and names of 1,024 characters.
func TestLongNamesOfAzureFitIntoItsPages(t *testing.T) {
	t.Parallel()
	fake := buckets.New(t)
	fake.PageSize(5000)
	long := map[string]string{}
	for i := range 4000 {
		long[fmt.Sprintf("%s%04d", strings.Repeat("語", 1020), i)] = ""
	}
	fake.Put(long)
	if all, _, err := gather(t.Context(), open(t, fake, bucket.Azure, credential.Bucket{}), 5000); err != nil || len(all) != len(long) {
		t.Errorf("got %d, %v", len(all), err)
	}
}
