package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Where formats begin: RFC 1952 section 2.3.1 for gzip, RFC 8878 sections 3.1.1 and 3.1.2 for zstandard, and for tar the
// field that POSIX calls magic.
const (
	gzipMagic  = "\x1f\x8b"
	zstdMagic  = "\x28\xb5\x2f\xfd"
	zstdSkip   = "\x2a\x4d\x18" // after a byte of 0x50 to 0x5f
	tarMagic   = "ustar"
	tarMagicAt = 257
)

// expandAny goes by the first bytes.
func expandAny(src *bufio.Reader) (io.Reader, error) {
	head, err := src.Peek(blockSize)
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		return expandGzip(src)
	case bytes.HasPrefix(head, []byte(zstdMagic)), len(head) > 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == zstdSkip:
		return expandZstd(src)
	case err != nil:
		return nil, fmt.Errorf("%w: %d bytes are no archive", ErrCorrupt, len(head))
	case bytes.HasPrefix(head[tarMagicAt:], []byte(tarMagic)), len(bytes.Trim(head, "\x00")) == 0:
		return src, nil
	default:
		return nil, fmt.Errorf("%w: it is neither tar nor packed with gzip or zstandard", ErrCorrupt)
	}
}

func expandGzip(src *bufio.Reader) (io.Reader, error) { return gzip.NewReader(src) }

// maxWindow bounds the memory that a zstandard frame asks for, in bytes. RFC 8878 wants 8 MiB of every decoder, which the
// zstd program stays within unless told to go ultra or long; some libraries' better levels take twice that.
const maxWindow = 16 << 20

// expandZstd decodes in the caller's goroutine, so that nothing is left to stop.
func expandZstd(src *bufio.Reader) (io.Reader, error) {
	decoder, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return zstdReader{decoder}, nil
}

// zstdReader marks the errors of the decoder.
type zstdReader struct{ decoder *zstd.Decoder }

func (r zstdReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return n, fmt.Errorf("%w: unpacking takes more than %d bytes of memory", ErrLimit, maxWindow)
	default:
		return n, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
}
