// Package verifytest signs artifacts for tests, with the libraries' own signers: cosign's keys, a whole sigstore
// with authority, logs and timestamps, and a notary. It also publishes trust roots by TUF and revocation lists.
// It does not know registries: what it signs, tests attach.
package verifytest

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/verify"
)

// PredicateSign is the predicate type of a statement that is a signature.
const PredicateSign = "https://sigstore.dev/cosign/sign/v1"

// Artifact is an artifact of the repository whose manifest has the given bytes.
func Artifact(repository, manifest string) verify.Artifact {
	return verify.Artifact{Repository: repository, Descriptor: ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest,
		Digest:    digest.FromString(manifest),
		Size:      int64(len(manifest)),
	}}
}

// SimplePayload is what cosign signs for the digest in the repository.
func SimplePayload(repository string, of digest.Digest) []byte {
	return []byte(`{"critical":{"identity":{"docker-reference":` + strconv.Quote(repository) +
		`},"image":{"docker-manifest-digest":` + strconv.Quote(of.String()) +
		`},"type":"cosign container image signature"},"optional":null}`)
}

// Statement is an in-toto statement about the digest.
func Statement(t testing.TB, predicateType string, of digest.Digest) []byte {
	t.Helper()
	return mustJSON(t, map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{of.Algorithm().String(): of.Encoded()}}},
		"predicateType": predicateType,
		"predicate":     map[string]any{},
	})
}

// Noon is when the sigstores of this package are in use; nothing that they sign is judged by the present time.
func Noon() time.Time { return time.Date(2025, time.March, 3, 12, 0, 0, 0, time.UTC) }

func mustJSON(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return encoded
}
