package registry

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/transport"
)

// maxResumes is how often one blob is asked for again after its connection broke.
const maxResumes = 2

// Blob returns the blob as a stream, which has to be closed. The Read that would end it fails instead, with ErrDigest
// or io.ErrUnexpectedEOF, when size or digest are not those of the descriptor: what was read before is worth nothing
// then. A connection that breaks is continued where it broke, twice at most. The context bounds the whole stream.
func (c *Client) Blob(ctx context.Context, r Repository, d ocispec.Descriptor) (io.ReadCloser, error) {
	return c.blob(ctx, r, d, true)
}

// Unverified is Blob for a caller that hashes what it makes of the bytes: their number is checked here, their digest is
// left to the caller.
func (c *Client) Unverified(ctx context.Context, r Repository, d ocispec.Descriptor) (io.ReadCloser, error) {
	return c.blob(ctx, r, d, false)
}

// Bytes is Blob for what is small enough to be held as a whole; it counts against the Allowance.
func (c *Client) Bytes(ctx context.Context, r Repository, d ocispec.Descriptor) ([]byte, error) {
	stream, err := c.Blob(ctx, r, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // It was read to its end, or is worth nothing.
	allowance := r.Allowance
	if allowance == nil {
		allowance = c.Allowance("")
		defer allowance.Release()
	}
	return io.ReadAll(allowed{ctx, stream, allowance})
}

func (c *Client) blob(ctx context.Context, r Repository, d ocispec.Descriptor, hashed bool) (io.ReadCloser, error) {
	e, err := c.begin(r)
	if err != nil {
		return nil, e.conclude(ctx, "get blob", "", err)
	}
	if err := checkDescriptor("descriptor", d, c.options.bounds().blob); err != nil {
		return nil, e.conclude(ctx, "get blob", "", err)
	}
	b := &blob{ctx: ctx, exchange: e, descriptor: d, missing: d.Size, resumes: maxResumes}
	if hashed {
		b.digest = d.Digest.Algorithm().Hash()
	}
	if b.body, err = b.open(); err != nil {
		return nil, b.conclude(err)
	}
	return b, nil
}

// blob is a stream that is checked while it is read.
type blob struct {
	// A stream lives as long as the call that it was opened for.
	ctx        context.Context
	exchange   *exchange
	descriptor ocispec.Descriptor
	body       io.ReadCloser
	digest     hash.Hash // nil when the caller hashes
	missing    int64
	resumes    int
	ended      error
}

func (b *blob) open() (io.ReadCloser, error) {
	response, err := b.exchange.get(b.ctx, ask{path: b.path(), header: http.Header{"Accept-Encoding": {identity}}})
	if err != nil {
		return nil, err
	}
	if err := checkEncoding(response); err != nil {
		_ = response.Body.Close() // Not what was asked for.
		return nil, err
	}
	if length := response.ContentLength; length >= 0 && length != b.descriptor.Size {
		_ = response.Body.Close() // Not what was asked for.
		return nil, fmt.Errorf("%w: registry sends %d bytes of type %s, where %d were promised", ErrDigest,
			length, transport.PrintableQuoted(response.Header.Get("Content-Type")), b.descriptor.Size)
	}
	return response.Body, nil
}

func (b *blob) path() string { return "/blobs/" + b.descriptor.Digest.String() }

// Read returns io.EOF only when all bytes are there and their digest is right.
func (b *blob) Read(p []byte) (int, error) {
	for b.ended == nil && len(p) > 0 {
		if b.missing == 0 {
			b.end(b.finish())
			break
		}
		n, err := b.body.Read(p[:min(int64(len(p)), b.missing)])
		if b.digest != nil {
			b.digest.Write(p[:n]) // A hash never fails to write.
		}
		b.missing -= int64(n)
		if err != nil && b.missing > 0 {
			if err := b.resume(err); err != nil {
				b.end(err)
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.ended
}

func (b *blob) end(err error) {
	if err == nil {
		b.ended = io.EOF
		return
	}
	b.ended = b.conclude(err)
}

func (b *blob) conclude(err error) error {
	return b.exchange.conclude(b.ctx, "get blob", "@"+b.descriptor.Digest.String(), err)
}

// finish judges the blob once all its bytes are there. That the connection breaks after them does not matter.
func (b *blob) finish() error {
	var more [1]byte
	if n, _ := io.ReadFull(b.body, more[:]); n > 0 {
		return fmt.Errorf("%w: registry sends more than the %d bytes that were promised", ErrDigest, b.descriptor.Size)
	}
	if b.digest == nil {
		return nil
	}
	if got := fmt.Sprintf("%x", b.digest.Sum(nil)); got != b.descriptor.Digest.Encoded() {
		return fmt.Errorf("%w: registry sends bytes with digest %s:%s", ErrDigest, b.descriptor.Digest.Algorithm(), got)
	}
	return nil
}

// resume asks for the bytes from the first missing one on.
func (b *blob) resume(cause error) error {
	at := fmt.Errorf("%w after %d of %d bytes", io.ErrUnexpectedEOF, b.descriptor.Size-b.missing, b.descriptor.Size)
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		cause = at
	} else {
		cause = fmt.Errorf("%w: %w", at, cause)
	}
	for b.ctx.Err() == nil && b.resumes > 0 {
		b.resumes--
		_ = b.body.Close() // It is broken.
		body, err := b.reopen()
		if err == nil {
			b.body = body
			return nil
		}
		cause = fmt.Errorf("%w; continue there: %w", cause, err)
		if isAnswer(err) || errors.Is(err, ErrProtocol) {
			break
		}
	}
	return cause
}

func (b *blob) reopen() (io.ReadCloser, error) {
	from, size := b.descriptor.Size-b.missing, b.descriptor.Size
	response, err := b.exchange.send(b.ctx, ask{method: http.MethodGet, path: b.path(), header: http.Header{
		"Accept-Encoding": {identity}, "Range": {"bytes=" + strconv.FormatInt(from, 10) + "-"},
	}})
	if err != nil {
		return nil, err
	}
	want := fmt.Sprintf("bytes %d-%d/%d", from, size-1, size)
	switch got := response.Header.Get("Content-Range"); {
	case response.StatusCode == http.StatusOK:
		err = protocolErrorf("registry cannot send a part of a blob")
	case response.StatusCode != http.StatusPartialContent:
		err = b.exchange.refused(response)
	case got != want:
		err = protocolErrorf("registry sends the part %s instead of %q", transport.PrintableQuoted(got), want)
	default:
		err = checkEncoding(response)
	}
	if err != nil {
		_ = response.Body.Close() // Not what was asked for.
		return nil, err
	}
	return response.Body, nil
}

// Close ends the stream.
func (b *blob) Close() error {
	if b.ended == nil {
		b.ended = b.conclude(errors.New("stream is closed"))
	}
	return b.body.Close()
}

// isAnswer tells errors that a server answered with from those of the connection. A redirect that is not followed is one.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*StatusError](err)
	return ok || errors.Is(err, ErrRealm) || errors.Is(err, ErrAuthentication) ||
		errors.Is(err, transport.ErrRedirect) || errors.Is(err, transport.ErrDenied)
}
