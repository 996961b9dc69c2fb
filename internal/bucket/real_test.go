package bucket_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestARealS3: a server that checks signatures, with the etags that it makes itself.
func TestARealS3(t *testing.T) {
	t.Parallel()
	server := buckets.Serve(t, testenv.Root(), "s3")
	writer, err := buckets.Writer(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.MakeBucket(t.Context(), "real", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	parts := make([]byte, 11<<20)
	_, _ = rand.Read(parts)
	want := map[string]string{"a b/c+d": "1", "é": "2", "empty": "", "in parts": string(parts)}
	for i := range 1100 {
		want[fmt.Sprintf("many/%04d", i)] = fmt.Sprint(i)
	}
	for key, body := range want {
		options := minio.PutObjectOptions{PartSize: 5 << 20}
		if _, err := writer.PutObject(t.Context(), "real", key, strings.NewReader(body), int64(len(body)), options); err != nil {
			t.Fatal(err)
		}
	}
	keys := credential.Bucket{AccessKey: buckets.AccessKey, SecretKey: credential.NewSecret(buckets.SecretKey)}
	l := bucket.Location{Kind: bucket.S3, Endpoint: server.Address, Bucket: "real", Insecure: true, Credential: keys}
	all := clients("")
	b, err := all.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := gather(t.Context(), b, 10_000)
	if err != nil || len(found) != len(want) {
		t.Fatal(len(found), err)
	}
	for _, object := range found {
		if strings.HasPrefix(object.Key, "many/") && object.Key > "many/0010" {
			continue
		}
		if got, err := get(t, b, object); err != nil || got != want[object.Key] {
			t.Errorf("%q: %d bytes, %v", object.Key, len(got), err)
		}
	}
	if page, err := b.List(t.Context(), bucket.Listing{Prefix: "nothing"}); err != nil || len(page.Objects) > 0 {
		t.Errorf("nothing is listed: %v, %v", page, err)
	}
	if _, err := writer.PutObject(t.Context(), "real", found[0].Key, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, b, found[0]); !errors.Is(err, bucket.ErrChanged) {
		t.Errorf("an object that has changed: %v", err)
	}

	l.Bucket = "nowhere"
	if b, err = all.Open(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gather(t.Context(), b, 10); !errors.Is(err, bucket.ErrNoBucket) {
		t.Errorf("a bucket that is not there: %v", err)
	}
	l.Bucket, l.Credential.SecretKey = "real", credential.NewSecret("CANARY-wrong")
	if b, err = all.Open(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	status, ok := errors.AsType[*bucket.StatusError](second(gather(t.Context(), b, 10)))
	if !ok || status.Code != "SignatureDoesNotMatch" || strings.Contains(status.Error(), "CANARY") {
		t.Errorf("wrong keys: %v", status)
	}
	l.Credential = credential.Bucket{}
	if b, err = all.Open(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if status, ok = errors.AsType[*bucket.StatusError](second(gather(t.Context(), b, 10))); !ok || status.Status != http.StatusForbidden {
		t.Errorf("nobody: %v", status)
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

// TestAnEmulatedGoogleStorage: it is another's reading of the protocol than our fake.
func TestAnEmulatedGoogleStorage(t *testing.T) {
	t.Parallel()
	server := buckets.Serve(t, testenv.Root(), "gcs")
	post := func(path, kind string, body []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Address+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", path, response.Status, text)
		}
	}
	post("/storage/v1/b", "application/json", []byte(`{"name":"emulated"}`))
	want := map[string]string{"a b/c+d": "1", "é?": "2", "plain": strings.Repeat("x", 100_000)}
	put := func(key, body string) {
		post("/upload/storage/v1/b/emulated/o?uploadType=media&name="+url.QueryEscape(key), "text/plain", []byte(body))
	}
	for key, body := range want {
		put(key, body)
	}
	b, err := clients(server.Address).Open(t.Context(), bucket.Location{Kind: bucket.Google, Bucket: "emulated"})
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := gather(t.Context(), b, 100)
	if err != nil || len(found) != len(want) {
		t.Fatal(found, err)
	}
	for _, object := range found {
		if got, err := get(t, b, object); err != nil || got != want[object.Key] || object.Generation == "" || object.ETag == "" {
			t.Errorf("%+v: %d bytes, %v", object, len(got), err)
		}
	}
	if page, err := b.List(t.Context(), bucket.Listing{Prefix: "nothing"}); err != nil || len(page.Objects) > 0 {
		t.Errorf("nothing is listed: %v, %v", page, err)
	}
	put(found[0].Key, "new")
	if _, err := get(t, b, found[0]); !errors.Is(err, bucket.ErrChanged) {
		t.Errorf("an object that has changed: %v", err)
	}
}
