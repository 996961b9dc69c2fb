package server

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// describe sets the header of a body. A published path never changes its bytes, so it may be cached for a year,
// the longest time that caches are asked to take seriously, without asking again.
func describe(header http.Header, artifact storage.Artifact) {
	header.Set("Content-Type", contentType(artifact.Path))
	header.Set("ETag", `"`+artifact.Digest.String()+`"`)
	header.Set("Cache-Control", "max-age=31536000, immutable")
	setDigest(header, artifact.Digest)
}

func contentType(p string) string {
	if strings.HasSuffix(p, ".tar.gz") || strings.HasSuffix(p, ".tgz") {
		return "application/gzip"
	}
	return "application/octet-stream"
}

// setDigest names the body's digest as RFC 3230 and RFC 9530 do. Neither has a name for sha384: such a digest is in
// the ETag alone.
func setDigest(header http.Header, d digest.Digest) {
	var name string
	switch d.Algorithm() {
	case digest.SHA256:
		name = "sha-256"
	case digest.SHA512:
		name = "sha-512"
	default:
		return
	}
	sum, err := hex.DecodeString(d.Encoded())
	if err != nil {
		return
	}
	text := base64.StdEncoding.EncodeToString(sum)
	header.Set("Digest", name+"="+text)
	header.Set("Repr-Digest", name+"=:"+text+":")
}
