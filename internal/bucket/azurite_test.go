package bucket_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestAnEmulatedAzureStorage: it is Microsoft's own reading of the protocol, with the account's key and with a signature.
func TestAnEmulatedAzureStorage(t *testing.T) {
	t.Parallel()
	endpoint := buckets.ServeAzure(t, testenv.Root(), t.TempDir())
	if endpoint == "" {
		t.Skip("Azurite is not here: there is no Node.js, or npm could not install it")
	}
	key, err := container.NewSharedKeyCredential(buckets.AzureAccount, buckets.AzureKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := container.NewClientWithSharedKeyCredential(endpoint+"/emulated", key, nil)
	if err == nil {
		_, err = made.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, body string) {
		t.Helper()
		if _, err := made.NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte(body), &blockblob.UploadBufferOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"a b/c+d": "1", "é?": "2", "empty": "", "plain": strings.Repeat("x", 100_000)}
	for i := range 1100 {
		want[fmt.Sprintf("many/%04d", i)] = fmt.Sprint(i)
	}
	for name, body := range want {
		put(name, body)
	}
	signature, err := made.GetSASURL(sas.ContainerPermissions{Read: true, List: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(signature, "?")
	for name, login := range map[string]credential.Bucket{
		"key":       {Account: buckets.AzureAccount, AccountKey: credential.NewSecret(buckets.AzureKey)},
		"signature": {Query: credential.NewSecret(query)},
	} {
		b, err := clients("").Open(t.Context(), bucket.Location{Kind: bucket.Azure, Endpoint: endpoint, Bucket: "emulated", Credential: login})
		if err != nil {
			t.Fatal(name, err)
		}
		found, _, err := gather(t.Context(), b, 10_000)
		if err != nil || len(found) != len(want) {
			t.Fatal(name, len(found), err)
		}
		for _, object := range found {
			if strings.HasPrefix(object.Key, "many/") && object.Key > "many/0010" {
				continue
			}
			if got, err := get(t, b, object); err != nil || got != want[object.Key] || object.ETag == "" || strings.Contains(object.ETag, `"`) {
				t.Errorf("%s: %+v: %d bytes, %v", name, object, len(got), err)
			}
		}
		put(found[0].Key, "new")
		if _, err := get(t, b, found[0]); !errors.Is(err, bucket.ErrChanged) {
			t.Errorf("%s: an object that has changed: %v", name, err)
		}
		put(found[0].Key, want[found[0].Key])
		gone, err := clients("").Open(t.Context(), bucket.Location{Kind: bucket.Azure, Endpoint: endpoint, Bucket: "nowhere", Credential: login})
		if err != nil {
			t.Fatal(name, err)
		}
		if _, _, err := gather(t.Context(), gone, 10); name == "key" && !errors.Is(err, bucket.ErrNoBucket) {
			t.Errorf("%s: a container that is not there: %v", name, err)
		}
	}
	wrong := credential.Bucket{Account: buckets.AzureAccount, AccountKey: credential.NewSecret("Q0FOQVJZ")}
	b, err := clients("").Open(t.Context(), bucket.Location{Kind: bucket.Azure, Endpoint: endpoint, Bucket: "emulated", Credential: wrong})
	if err != nil {
		t.Fatal(err)
	}
	status, ok := errors.AsType[*bucket.StatusError](second(gather(t.Context(), b, 10)))
	if !ok || status.Status != http.StatusForbidden || strings.Contains(status.Error(), "Q0FOQVJZ") {
		t.Errorf("a wrong key: %v", status)
	}
}
