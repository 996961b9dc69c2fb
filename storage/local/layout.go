package local

import (
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

const (
	ownDir     = ".sluice"
	blobsDir   = ownDir + "/blobs"
	recordsDir = ownDir + "/records"
	tmpDir     = ownDir + "/tmp"
	lockFile   = ownDir + "/lock"
)

// blobPath is where the body of that digest lies. The digest must be valid.
func blobPath(d digest.Digest) string {
	return blobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

// recordPath gives each object a folder: a name of 253 bytes leaves no room for a suffix.
func recordPath(object storage.Object) string {
	return recordsDir + "/" + object.Kind + "/" + object.Namespace + "/" + object.Name + "/record.json"
}
