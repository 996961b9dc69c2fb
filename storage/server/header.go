package server

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// describe sets the header of a body that was asked for by the path.
func describe(header http.Header, p string, artifact storage.Artifact) {
	header.Set("Content-Type", contentType(artifact.Path))
	header.Set("ETag", `"`+artifact.Digest.String()+`"`)
	header.Set("Cache-Control", cacheControl(p, artifact.Digest))
	if artifact.Path != p {
		header.Set("Content-Location", "/"+artifact.Path)
	}
	if sum := reprDigest(artifact.Digest); sum != "" {
		header.Set("Repr-Digest", sum)
	}
}

// cacheControl lets a name that carries the beginning of its digest be cached for a year, the longest time that caches are
// asked to take seriously. Any other may have another body one day: an object that is made anew under an old name uses its
// plain names again, and latest stands for whatever is current. Caches ask for these each time, and are told 304.
func cacheControl(p string, d digest.Digest) string {
	if isBound(p, d) {
		return "max-age=31536000, immutable"
	}
	return "no-cache"
}

// isBound tells whether the name never means other bytes.
func isBound(p string, d digest.Digest) bool {
	return strings.Contains(path.Base(p), "-"+d.Encoded()[:12]+".")
}

func contentType(p string) string {
	if strings.HasSuffix(p, ".tar.gz") || strings.HasSuffix(p, ".tgz") {
		return "application/gzip"
	}
	return "application/octet-stream"
}

// reprDigest names the body's digest as RFC 9530 does, which has no name for sha384: such a digest is in the ETag alone.
func reprDigest(d digest.Digest) string {
	bits := strings.TrimPrefix(d.Algorithm().String(), "sha")
	sum, err := hex.DecodeString(d.Encoded())
	if d.Algorithm() == digest.SHA384 || err != nil {
		return ""
	}
	return "sha-" + bits + "=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}
