package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"sluice.dev/sluice/internal/transport"
)

// errFull says that a registry stopped taking what is sent to it.
var errFull = errors.New("registry takes no more data")

// Push puts a blob, or a manifest under its digest, into the repository, and tells whether it was not there before. A manifest
// that has a subject is listed among that one's referrers.
func (c *Client) Push(ctx context.Context, r Repository, d ocispec.Descriptor, content io.ReaderAt) (pushed bool, err error) {
	return call(ctx, c, r, "push", "@"+d.Digest.String(), func(e *exchange) (bool, error) {
		return writing(ctx, e, content, d.Size, func(ctx context.Context, to *remote.Repository) (bool, error) {
			there, err := to.Exists(ctx, d)
			// Whoever put a manifest there may have been interrupted before it was listed.
			if err != nil || there && d.MediaType != ocispec.MediaTypeImageManifest {
				return false, err
			}
			return !there, to.Push(ctx, d, io.NewSectionReader(content, 0, d.Size))
		})
	})
}

// Tag puts a manifest under a tag, and takes the tag from what had it.
func (c *Client) Tag(ctx context.Context, r Repository, tag string, d ocispec.Descriptor, manifest []byte) error {
	_, err := call(ctx, c, r, "tag", ":"+tag, func(e *exchange) (bool, error) {
		content := bytes.NewReader(manifest)
		return writing(ctx, e, content, d.Size, func(ctx context.Context, to *remote.Repository) (bool, error) {
			return true, to.PushReference(ctx, d, content, tag)
		})
	})
	return err
}

// writing lets the library write into the repository.
func writing(
	ctx context.Context, e *exchange, content io.ReaderAt, size int64, write func(context.Context, *remote.Repository) (bool, error),
) (bool, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.writes = true
	u := &uploads{exchange: e, stop: func() { stop(errFull) }, content: content, size: size}
	at := registry.Reference{Registry: e.host, Repository: e.name}
	done, err := write(ctx, &remote.Repository{Client: u, Reference: at})
	if err != nil && errors.Is(context.Cause(ctx), errFull) {
		return false, errFull
	}
	return done, err
}

// uploads sends what the library writes.
type uploads struct {
	exchange *exchange
	stop     func()
	content  io.ReaderAt
	size     int64
}

// Do sends a request. Its body may have to be sent anew once the registry has said how it authenticates.
func (u *uploads) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		request = request.Clone(request.Context())
		if request.GetBody == nil {
			request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(u.content, 0, u.size)), nil }
		}
		whole, guard := request.GetBody, u.exchange.client.options.Transport.Upload
		request.GetBody = func() (io.ReadCloser, error) {
			body, err := whole()
			return guard(body, u.stop), err
		}
	}
	response, err := u.exchange.Do(request)
	if err != nil {
		return nil, err
	}
	// The library goes by the scheme that it named itself, and by the host: what is sent goes nowhere else.
	origin := u.exchange.session.origin
	if location, err := response.Location(); err == nil && transport.Origin(location) == transport.Origin(origin) {
		location.Scheme, location.Host = "https", u.exchange.host
		response.Header.Set("Location", location.String())
	}
	return response, nil
}

// isWritten says whether an answer is one that pushing goes by: what was taken, and that something is not there.
func isWritten(method string, status int) bool {
	switch status {
	case http.StatusCreated, http.StatusAccepted:
		return method == http.MethodPost || method == http.MethodPut
	case http.StatusNotFound:
		return method == http.MethodHead || method == http.MethodGet
	}
	return false
}
