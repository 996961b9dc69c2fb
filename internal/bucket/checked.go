package bucket

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // It is what storages name bodies with; it proves nothing against an attacker.
	"crypto/sha1" //nolint:gosec // The same.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
)

// sum is what the storage says that a hash of a body is.
type sum struct {
	name string
	hash hash.Hash
	want []byte
}

// checked bounds a body by the size that was listed, and compares it with what the storage says of it.
func checked(body io.ReadCloser, object Object, sums []sum) io.ReadCloser {
	return &checkedBody{ReadCloser: body, left: object.Size, sums: sums}
}

type checkedBody struct {
	io.ReadCloser

	left int64
	sums []sum
}

// Read ends with ErrChecksum or ErrChanged instead of the end where the body is another one.
func (c *checkedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("%w: the body is longer than was listed", ErrChanged)
	}
	for _, s := range c.sums {
		_, _ = s.hash.Write(p[:n]) // A hash never fails to write.
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if c.left > 0 {
		return n, fmt.Errorf("%w: the body ends %d bytes early", io.ErrUnexpectedEOF, c.left)
	}
	for _, s := range c.sums {
		if got := s.hash.Sum(nil); !bytes.Equal(got, s.want) {
			return n, fmt.Errorf("%w: %s is %x and should be %x", ErrChecksum, s.name, got, s.want)
		}
	}
	return n, err
}

// s3Sums are those of a body of S3. An etag of 32 digits is the MD5 of the body, unless keys of the user's or of a key
// management service encrypt it; a checksum that was made of those of parts is not the body's.
func s3Sums(object Object, header http.Header) (sums []sum) {
	encrypted := header.Get("X-Amz-Server-Side-Encryption")
	plain := (encrypted == "" || encrypted == "AES256") && header.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") == ""
	if want, err := hex.DecodeString(object.ETag); err == nil && len(want) == md5.Size && plain {
		sums = append(sums, sum{"MD5", md5.New(), want}) //nolint:gosec // It is what the etag is.
	}
	if header.Get("X-Amz-Checksum-Type") == "COMPOSITE" {
		return sums
	}
	for name, make := range map[string]func() hash.Hash{
		"Sha256": sha256.New,
		"Sha1":   sha1.New,
		"Crc32":  func() hash.Hash { return crc32.NewIEEE() },
		"Crc32c": newCastagnoli,
	} {
		text := header.Get("X-Amz-Checksum-" + name)
		if text == "" || strings.Contains(text, "-") {
			continue
		}
		sums = addSum(sums, strings.ToUpper(name), make(), text)
		break // One is enough.
	}
	return sums
}

// addSum adds what is written in base64. What cannot be read says nothing.
func addSum(sums []sum, name string, hash hash.Hash, text string) []sum {
	want, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(want) != hash.Size() {
		return sums
	}
	return append(sums, sum{name, hash, want})
}

func newCastagnoli() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }
