package verify

import (
	"encoding/base64"
	"strings"
)

const (
	// MediaTypeSimpleSigning is the payload that cosign signs and keeps as a layer; its signature is an annotation.
	// Format: https://github.com/containers/image/blob/main/docs/containers-signature.5.md, as cosign uses it.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// AnnotationSignature holds the signature over a simple-signing payload, in base64.
	AnnotationSignature = "dev.cosignproject.cosign/signature"
	// AnnotationCertificate holds the certificate of a keyless signature, in PEM.
	AnnotationCertificate = "dev.sigstore.cosign/certificate"
	// AnnotationChain holds the certificates above it, in PEM.
	AnnotationChain = "dev.sigstore.cosign/chain"
	// AnnotationBundle holds the transparency log's entry and promise, in JSON.
	AnnotationBundle = "dev.sigstore.cosign/bundle"
	// AnnotationTimestamp holds an RFC 3161 timestamp over the signature, in JSON.
	AnnotationTimestamp = "dev.sigstore.cosign/rfc3161timestamp"

	// simpleSigningType is what cosign writes into critical.type. The older "atomic container signature" belongs
	// to GPG signatures kept elsewhere, and no cosign ever wrote it: it is refused.
	simpleSigningType = "cosign container image signature"
)

// claims are what a simple-signing payload says. What is optional in it proves nothing and is not read.
type claims struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
	} `json:"critical"`
}

// checkClaims asks whether a payload, whose signature has been proved, is about the artifact.
//
// cosign itself does not compare the repository, so that a signature moves with an image to any mirror; here a
// signature made for one repository approves nothing in another one unless anyRepository is set. A payload that
// names no repository is refused likewise.
func checkClaims(payload []byte, artifact Artifact, anyRepository bool) error {
	var signed claims
	if err := decodeStrictly(payload, &signed); err != nil {
		return refuse("its payload is malformed: %v", err)
	}
	if signed.Critical.Type != simpleSigningType {
		return refuse("its payload is of type %q, not %q", signed.Critical.Type, simpleSigningType)
	}
	if signed.Critical.Image.Digest != artifact.Descriptor.Digest.String() {
		return refuse("it was made for digest %q, not for %s", signed.Critical.Image.Digest, artifact.Descriptor.Digest)
	}
	if anyRepository {
		return nil
	}
	reference := signed.Critical.Identity.Reference
	if reference == "" {
		return refuse("its payload names no repository")
	}
	if canonicalRepository(reference) != canonicalRepository(artifact.Repository) {
		return refuse("it was made for repository %q, not for %q", reference, artifact.Repository)
	}
	return nil
}

// payloadSignature is the signature over a simple-signing payload.
func payloadSignature(signature Signature) ([]byte, error) {
	encoded := strings.TrimSpace(signature.Annotations[AnnotationSignature])
	if encoded == "" {
		return nil, refuse("it lacks annotation %s", AnnotationSignature)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, refuse("annotation %s: %v", AnnotationSignature, err)
	}
	return raw, nil
}
