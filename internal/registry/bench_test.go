package registry

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// BenchmarkBlob pulls 50 MB, and beside it the same bytes by a plain client with the same check.
func BenchmarkBlob(b *testing.B) {
	content := make([]byte, 50<<20)
	d := blobDescriptor(content)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && r.Method == http.MethodGet {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content)
		}
	}))
	defer server.Close()
	factory := transport.New(transport.Options{AllowLoopback: true})
	defer factory.Close()
	client, err := New(Options{Transport: factory})
	if err != nil {
		b.Fatal(err)
	}
	r := Repository{Host: server.Listener.Addr().String(), Name: name, Insecure: true, Credential: credential.Registry{}}
	b.Run("checked", func(b *testing.B) {
		b.SetBytes(d.Size)
		b.ReportAllocs()
		for b.Loop() {
			stream, err := client.Blob(b.Context(), r, d)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, stream); n != d.Size || err != nil {
				b.Fatal(n, err)
			}
			_ = stream.Close()
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(d.Size)
		b.ReportAllocs()
		for b.Loop() {
			response, err := http.Get(server.URL)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(sha256.New(), response.Body); n != d.Size || err != nil {
				b.Fatal(n, err)
			}
			_ = response.Body.Close()
		}
	})
}
