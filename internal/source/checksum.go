package source

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/archive"
)

// checksumVersion changes whenever the meaning of a checksum does.
const checksumVersion = "1"

// ConfigChecksum returns the contentConfigChecksum of a configuration: sha256 over the JSON form of the
// versions of this encoding and of the archive format, the kind, and the configuration. JSON quotes every
// string and keeps the order of struct fields, so that no two configurations share an encoding.
//
// The configuration holds every spec field that shapes or proves the artifact, and nothing else.
func ConfigChecksum(kind string, config any) (string, error) {
	encoded, err := json.Marshal(struct {
		Version string `json:"version"`
		Archive string `json:"archive"`
		Kind    string `json:"kind"`
		Config  any    `json:"config"`
	}{checksumVersion, archive.FormatVersion, kind, config})
	if err != nil {
		return "", fmt.Errorf("encode configuration of %s: %w", kind, err)
	}
	return digest.SHA256.FromBytes(encoded).String(), nil
}
