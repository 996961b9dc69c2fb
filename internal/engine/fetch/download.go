package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// download asks once. It gives the number of bytes of the body that were read, whatever else happened. Begin is called
// once the server has given its answer, and before the body is read; its error ends the download.
func (c *Cache) download(ctx context.Context, a Artifact, begin func() error) (*archive.Tree, int64, error) {
	get := c.options.Get
	if get == nil {
		get = c.get
	}
	response, err := get(ctx, a) //nolint:bodyclose // The guarded stream closes it.
	if err != nil {
		return nil, 0, err
	}
	stream := c.clients.Body(response.Body)
	defer stream.Close()
	if response.StatusCode != http.StatusOK {
		return nil, 0, refused(response)
	}
	limit := c.options.MaxDownload
	if a.Size > 0 {
		limit = min(limit, a.Size)
	}
	if response.ContentLength > limit {
		return nil, 0, tooLarge(a, limit)
	}
	if err := begin(); err != nil {
		return nil, 0, err
	}
	body := &verified{src: stream, sum: digest.Digest(a.Digest).Algorithm().Digester(), left: limit}
	tree, err := c.unpack(ctx, a, body, limit)
	return tree, limit - body.left, err
}

// get asks for the artifact at its URL.
func (c *Cache) get(ctx context.Context, a Artifact) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: its url is not valid", ErrArtifact)
	}
	client, err := c.clients.HTTP(request.URL, credential.TLS{}, credential.Proxy{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArtifact, err)
	}
	// The digest is that of the bytes as they are stored; nothing may be packed once more or unpacked on the way.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable(err)
	}
	return response, nil
}

// unpack reads the whole body, so that the digest has the last word even on an archive that is damaged.
func (c *Cache) unpack(ctx context.Context, a Artifact, body *verified, limit int64) (*archive.Tree, error) {
	tree, err := archive.Open(ctx, body, c.options.Dir, c.options.Limits)
	if isVerdict(err) && body.err == nil {
		_, _ = io.Copy(io.Discard, body) // Its error is in body.err.
	}
	switch got := body.sum.Digest(); {
	case errors.Is(body.err, ErrTooLarge):
		err = tooLarge(a, limit)
	case body.err != nil && !errors.Is(body.err, io.EOF):
		err = unreachable(body.err)
	case err != nil && !isVerdict(err):
		// Our own disk, or the context.
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	case got.String() != a.Digest:
		err = fmt.Errorf("%w %s: got %s; look at the source's status and at what serves its artifacts", ErrDigest, a.Digest, got.Encoded())
	}
	if err != nil && tree != nil {
		_ = tree.Close() // Nobody has it.
		return nil, err
	}
	return tree, err
}

// unreachable is the error of a request or of a body that stopped.
func unreachable(err error) error {
	safe := transport.SafeError(err)
	if errors.Is(err, transport.ErrDenied) || errors.Is(err, transport.ErrRedirect) {
		return fmt.Errorf("%w: %w", ErrStatus, safe)
	}
	return fmt.Errorf("%w: %w; is the source's controller running and reachable from here?", ErrUnavailable, safe)
}

// refused is the error of any status but 200.
func refused(response *http.Response) error {
	status := strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
	switch code := response.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("%w: the server answers %s: the source may be storing it anew; if this lasts, look at the source's Ready condition",
			ErrUnavailable, status)
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // A date or nothing is no delay.
		return &busy{
			error: fmt.Errorf("%w: the server answers %s", ErrUnavailable, status),
			after: time.Duration(min(max(seconds, 0), 3600)) * time.Second,
		}
	default:
		return fmt.Errorf("%w: it answers %s; does the source's status name the right url?", ErrStatus, status)
	}
}

func tooLarge(a Artifact, limit int64) error {
	if a.Size > 0 && limit == a.Size {
		return fmt.Errorf("%w: more than the %d bytes that the source announced", ErrTooLarge, limit)
	}
	return fmt.Errorf("%w: more than %d bytes are never downloaded", ErrTooLarge, limit)
}

// verified hashes what is read from a body, and ends it with ErrTooLarge at a limit.
type verified struct {
	src  io.Reader
	sum  digest.Digester
	left int64
	err  error // what ended the body
}

func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	// One byte more than is allowed tells a body that goes on from one that ends.
	if int64(len(p)) > v.left+1 {
		p = p[:v.left+1]
	}
	n, err := v.src.Read(p)
	if int64(n) > v.left {
		n, err = int(v.left), ErrTooLarge
	}
	v.left -= int64(n)
	v.sum.Hash().Write(p[:n])
	v.err = err
	return n, err
}
