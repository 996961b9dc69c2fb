package bucket_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestTheProxyIsTheOnlyWay: the storage's name leads nowhere but through it, and it alone is told its password.
func TestTheProxyIsTheOnlyWay(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.Kind{bucket.S3, bucket.Azure, bucket.Google} {
		fake := buckets.New(t)
		fake.Put(map[string]string{"a": "1"})
		var asked atomic.Int64
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("out:CANARY-way"))
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "storage.invalid" || r.Header.Get("Proxy-Authorization") != want {
				w.WriteHeader(http.StatusProxyAuthRequired)
				return
			}
			asked.Add(1)
			r.Header.Del("Proxy-Authorization")
			fake.ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		l := bucket.Location{Kind: kind, Endpoint: "storage.invalid", Bucket: buckets.Bucket, Insecure: true}
		if kind == bucket.Azure {
			l.Endpoint = "http://storage.invalid"
		}
		for _, password := range []string{"CANARY-way", "CANARY-wrong"} {
			l.Credential.Proxy = credential.Proxy{URL: proxy.URL, Username: "out", Password: credential.NewSecret(password)}
			b, err := clients("http://storage.invalid").Open(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			all, _, err := gather(t.Context(), b, 10)
			if password == "CANARY-way" {
				if err != nil || len(all) != 1 || asked.Load() == 0 {
					t.Errorf("%s: got %v, %v", kind, all, err)
				}
				if got, err := get(t, b, all[0]); err != nil || got != "1" {
					t.Errorf("%s: got %q, %v", kind, got, err)
				}
			} else if err == nil || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: got %v", kind, err)
			}
		}
	}
}
