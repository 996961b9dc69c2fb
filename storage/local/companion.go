package local

import (
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// companionOf is a companion as the functions see it that look at one body.
func companionOf(c storage.Companion) storage.Artifact {
	return storage.Artifact{Digest: c.Digest, Size: c.Size}
}

// bodies lists the digests of a body and of its companion, if it has one.
func bodies(body digest.Digest, companion storage.Companion) []digest.Digest {
	if companion == (storage.Companion{}) {
		return []digest.Digest{body}
	}
	return []digest.Digest{body, companion.Digest}
}

// validCompanion tells whether a companion may become a file name.
func validCompanion(c storage.Companion) error {
	if c == (storage.Companion{}) {
		return nil
	}
	return c.Digest.Validate()
}

// companions lists the companions of artifacts as artifacts of their own.
func companions(artifacts []storage.Artifact) []storage.Artifact {
	var all []storage.Artifact
	for _, a := range artifacts {
		if path := a.CompanionPath(); path != "" {
			all = append(all, storage.Artifact{Path: path, Digest: a.Companion.Digest, Size: a.Companion.Size, StoredAt: a.StoredAt})
		}
	}
	return all
}
