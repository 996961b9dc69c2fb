package registry

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// BlobStore is the server on another origin to which registries redirect for blobs. It takes the signature in the
// URL for proof and refuses requests with any other, as object stores do.
type BlobStore struct {
	faults
	journal

	port  *upstream.Port
	front *site
	app   *application
}

const (
	blobSignature = "X-Signature"
	blobSigned    = "0f1e2d3c4b5a"
)

// BlobStore opens a blob store for the registry's blobs, with TLS if there is an authority. It is closed with the
// registry. RedirectBlobs sends clients there.
func (r *Registry) BlobStore(ctx context.Context, ca *upstream.CA) (*BlobStore, error) {
	port, err := upstream.Listen(ctx, upstream.HTTPOptions{CA: ca})
	if err != nil {
		return nil, fmt.Errorf("open blob store: %w", err)
	}
	s := &BlobStore{port: port, app: r.app}
	s.front = serve(ctx, port, http.HandlerFunc(s.serve))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs = append(r.blobs, s)
	return s, nil
}

// RedirectBlobs answers 307 to requests for blobs and names the store's signed URL.
func RedirectBlobs(store *BlobStore) Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		request := readRequest(r)
		w.Header().Set("Location", fmt.Sprintf("%s/%s/%s?%s=%s",
			store.URL(), request.Repository, request.Reference, blobSignature, blobSigned))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}).On(Blob, BlobHEAD)
}

// URL is scheme://host:port, without a slash at its end.
func (s *BlobStore) URL() string { return s.port.URL() }

// Close stops the store.
func (s *BlobStore) Close() { s.front.close() }

func (s *BlobStore) serve(w http.ResponseWriter, r *http.Request) {
	request := readRequest(r)
	request.Kind = Blob
	if r.Method == http.MethodHead {
		request.Kind = BlobHEAD
	}
	seen := request
	out := s.note(&seen, w)
	s.behind(request, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := strings.LastIndex(r.URL.Path, "/")
		switch {
		case r.Header.Get("Authorization") != "":
			writeError(w, http.StatusBadRequest)
		case r.URL.Query().Get(blobSignature) != blobSigned:
			writeError(w, http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			writeError(w, http.StatusMethodNotAllowed)
		default:
			s.app.get(w, r, "/v2"+r.URL.Path[:at]+"/blobs"+r.URL.Path[at:])
		}
	})).ServeHTTP(out, r)
}
