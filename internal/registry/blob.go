package registry

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

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

// Bytes is Blob for what is small enough to be held as a whole. It draws as Manifest does.
func (c *Client) Bytes(ctx context.Context, r Repository, d ocispec.Descriptor) ([]byte, error) {
	stream, err := c.Blob(ctx, r, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // It was read to its end, or is worth nothing.
	return io.ReadAll(drawn{ctx, stream})
}

func (c *Client) blob(ctx context.Context, r Repository, d ocispec.Descriptor, hashed bool) (_ io.ReadCloser, err error) {
	b := &blob{ctx: ctx, descriptor: d, missing: d.Size, resumes: maxResumes}
	if b.exchange, err = c.begin(r); err == nil {
		err = checkDescriptor("descriptor", d, c.options.bounds().blob)
	}
	if err != nil {
		return nil, b.conclude(err)
	}
	if hashed {
		b.digest = d.Digest.Algorithm().Hash()
	}
	at := registry.Reference{Registry: b.exchange.host, Repository: b.exchange.name}
	if b.body, err = (&remote.Repository{Client: b, Reference: at}).Blobs().Fetch(ctx, d); err != nil {
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

// Do sends what the library asks for the blob, and returns an answer that may be what was promised.
func (b *blob) Do(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept-Encoding", identity)
	response, err := b.exchange.Do(request)
	if err != nil {
		return nil, err
	}
	if err := b.judge(response, request.Header.Get("Range") != ""); err != nil {
		_ = response.Body.Close() // Not what was asked for.
		return nil, err
	}
	// The library is to go by what comes: by the bytes themselves, and by the answer when it asks for a part.
	response.Header.Del(digestHeader)
	response.Header.Set("Accept-Ranges", "bytes")
	return response, nil
}

func (b *blob) judge(response *http.Response, part bool) error {
	size := b.descriptor.Size
	got, want := response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", size-b.missing, size-1, size)
	switch length := response.ContentLength; {
	case part && response.StatusCode == http.StatusOK:
		return protocolErrorf("registry cannot send a part of a blob")
	case part && got != want:
		return protocolErrorf("registry sends the part %s instead of %q", transport.PrintableQuoted(got), want)
	case !part && length >= 0 && length != size:
		return fmt.Errorf("%w: registry sends %d bytes of type %s, where %d were promised", ErrDigest,
			length, transport.PrintableQuoted(response.Header.Get("Content-Type")), size)
	}
	return checkEncoding(response)
}

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
	parts, ok := b.body.(io.Seeker)
	for ok && b.ctx.Err() == nil && b.resumes > 0 {
		b.resumes--
		_, _ = parts.Seek(0, io.SeekEnd) // That lets go of what is broken: the library asks for no place where it is.
		_, err := parts.Seek(-b.missing, io.SeekEnd)
		if err == nil {
			return nil
		}
		cause = fmt.Errorf("%w; continue there: %w", cause, errors.Unwrap(err))
		if isAnswer(err) || errors.Is(err, ErrProtocol) {
			break
		}
	}
	return cause
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
