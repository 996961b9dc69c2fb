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
	setDigest(header, artifact.Digest)
}

// cacheControl lets a name that carries the beginning of its digest be cached for a year, the longest time that caches are
// asked to take seriously. Any other may have another body one day: an object that is made anew under an old name uses its
// plain names again, and latest stands for whatever is current. Caches ask for these each time, and are told 304.
func cacheControl(p string, d digest.Digest) string {
	if strings.Contains(path.Base(p), "-"+d.Encoded()[:12]+".") {
		return "max-age=31536000, immutable"
	}
	return "no-cache"
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
