package verify

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"sluice.dev/sluice/internal/strictjson"
)

const (
	// MediaTypeBundle is a sigstore bundle of the current version; older versions are read as well.
	// Format: https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_bundle.proto
	MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

	bundlePrefix       = "application/vnd.dev.sigstore.bundle"
	mediaTypeStatement = "application/vnd.in-toto+json"

	// maxValues is how many values one object or list in a bundle may hold.
	maxValues = 1000
	// maxChain is how many certificates a signature may bring.
	maxChain = 8
	// maxTimestampBytes is how large one timestamp may be; usual ones have a few thousand bytes. The library reads
	// them in a time that grows with the square of how deep they nest.
	maxTimestampBytes = 32 << 10

	// predicateSign is the predicate type of a statement that is a signature and nothing else, as cosign sign
	// makes it since version 3. Any other statement describes the artifact — how it was built, what is in it, what
	// is wrong with it — and does not approve it, even if the same key signed it. cosign keeps the two apart by
	// the commands verify and verify-attestation.
	predicateSign = "https://sigstore.dev/cosign/sign/v1"
)

// isBundle says whether the media type is that of a sigstore bundle of any version; the bundle names its own again.
func isBundle(mediaType string) bool { return strings.HasPrefix(mediaType, bundlePrefix) }

// verifyCosign verifies a signature in either of cosign's forms. Either way, the artifact is proved by its sha256 alone.
func verifyCosign(
	ctx context.Context, artifact Artifact, signature Signature,
	bundled func(parsed *bundle.Bundle, sum []byte) (Signer, error), simple func() (Signer, error),
) (Signer, error) {
	return guarded(ctx, signature, func() (Signer, error) {
		isSimple := signature.MediaType == MediaTypeSimpleSigning
		if !isSimple && !isBundle(signature.MediaType) {
			return Signer{}, unsigned("%q is not the media type of a cosign signature", signature.MediaType)
		}
		sum, err := sha256Of(artifact)
		if err != nil {
			return Signer{}, err
		}
		if isSimple {
			return simple()
		}
		parsed, err := parseBundle(signature.Content, artifact)
		if err != nil {
			return Signer{}, err
		}
		return bundled(parsed, sum)
	})
}

// parseBundle reads a bundle that is a signature of the artifact, as far as its words go; nothing is proved yet.
func parseBundle(content []byte, artifact Artifact) (*bundle.Bundle, error) {
	words := &protobundle.Bundle{}
	// What is read of an empty entry takes sixty times its bytes.
	if err := (strictjson.Rules{Depth: maxDepth, Values: maxValues}).Unmarshal(content, &struct{}{}); err != nil {
		return nil, refuse("its bundle is malformed: %v", err)
	}
	if err := protojson.Unmarshal(content, words); err != nil {
		return nil, refuse("its bundle is malformed: %v", err)
	}
	var options []bundle.Option
	switch words.GetMediaType() {
	case MediaTypeBundle, bundlePrefix + "+json;version=0.3":
		// Private authorities hand out the certificates above the signer's, which bundles may carry since then.
		options = append(options, bundle.AllowCertificateChain())
	}
	parsed, err := bundle.NewBundle(words, options...)
	if err != nil {
		return nil, refuse("its bundle is malformed: %v", err)
	}
	if err := checkMaterial(words.GetVerificationMaterial()); err != nil {
		return nil, err
	}
	envelope := parsed.GetDsseEnvelope()
	if envelope == nil {
		return parsed, nil
	}
	if envelope.GetPayloadType() != mediaTypeStatement {
		return nil, unsigned("its envelope holds %q, not a statement", envelope.GetPayloadType())
	}
	return parsed, checkStatement(envelope.GetPayload(), artifact)
}

// checkMaterial bounds what comes with a signature before a library works on it.
func checkMaterial(material *protobundle.VerificationMaterial) error {
	if count := len(material.GetX509CertificateChain().GetCertificates()); count > maxChain {
		return refuse("its bundle has %d certificates, more than %d", count, maxChain)
	}
	for _, stamped := range material.GetTimestampVerificationData().GetRfc3161Timestamps() {
		if size := len(stamped.GetSignedTimestamp()); size > maxTimestampBytes {
			return refuse("its timestamp has %d bytes, more than %d", size, maxTimestampBytes)
		}
	}
	return checkEntries(material.GetTlogEntries())
}

// checkEntries asks that log entries are what they say they are, which the library takes on trust.
func checkEntries(entries []*protorekor.TransparencyLogEntry) error {
	for _, entry := range entries {
		kind, err := kindOf(entry.GetCanonicalizedBody())
		if err != nil {
			return refuse("its log entry is malformed: %v", err)
		}
		if said := entry.GetKindVersion(); said.GetKind() != kind.GetKind() || said.GetVersion() != kind.GetVersion() {
			return refuse("its log entry says %q %q and is %q %q", said.GetKind(), said.GetVersion(), kind.GetKind(), kind.GetVersion())
		}
	}
	return nil
}

// kindOf reads what kind of entry the body of a log entry is.
func kindOf(body []byte) (*protorekor.KindVersion, error) {
	var said struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	return &protorekor.KindVersion{Kind: said.Kind, Version: said.APIVersion}, nil
}

// statement is what of an in-toto statement matters here.
// Format: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
type statement struct {
	Type          string `json:"_type"`
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

func checkStatement(payload []byte, artifact Artifact) error {
	var signed statement
	if err := decodeStrictly(payload, &signed); err != nil {
		return refuse("its statement is malformed: %v", err)
	}
	switch signed.Type {
	case "https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1":
	default:
		return refuse("its statement is of type %q", signed.Type)
	}
	if signed.PredicateType != predicateSign {
		return unsigned("it is an attestation of type %q, not a signature", signed.PredicateType)
	}
	for _, subject := range signed.Subject {
		if subject.Digest["sha256"] == artifact.Descriptor.Digest.Encoded() {
			return nil
		}
	}
	return refuse("its statement is not about %s", artifact.Descriptor.Digest)
}

// sha256Of is the artifact's digest as sigstore compares it. Artifacts named by another hash cannot be proved by it.
func sha256Of(artifact Artifact) ([]byte, error) {
	named := artifact.Descriptor.Digest
	if err := named.Validate(); err != nil || named.Algorithm() != digest.SHA256 {
		return nil, refuse("the artifact's digest %q is not a sha256", named)
	}
	return hex.DecodeString(named.Encoded())
}

// aboutArtifact is the policy that a bundle is about the artifact's digest.
func aboutArtifact(sum []byte, options ...verify.PolicyOption) verify.PolicyBuilder {
	return verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), options...)
}
