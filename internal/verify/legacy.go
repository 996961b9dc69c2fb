package verify

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// legacyBundleType is the bundle version that asks for a log's promise, which is what the annotations carry.
const legacyBundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// legacy is a simple-signing payload with its annotations, in the form in which the library verifies bundles.
type legacy struct {
	*bundle.Bundle

	above []*x509.Certificate
}

// VerificationContent adds the certificates of the chain annotation. They need not be trusted: they only help to
// find the way to the authority.
func (l legacy) VerificationContent() (verify.VerificationContent, error) {
	content, err := l.Bundle.VerificationContent()
	if err != nil {
		return nil, err
	}
	return chained{VerificationContent: content, above: l.above}, nil
}

type chained struct {
	verify.VerificationContent

	above []*x509.Certificate
}

func (c chained) Intermediates() []*x509.Certificate { return c.above }

// legacyEntity converts the annotations of a keyless simple signature. Nothing is proved yet.
func legacyEntity(signature Signature) (verify.SignedEntity, error) {
	raw, err := payloadSignature(signature)
	if err != nil {
		return nil, err
	}
	converted, above, err := convert(signature, raw)
	if err != nil {
		return nil, refuse("%v", err)
	}
	if err := checkMaterial(converted.GetVerificationMaterial()); err != nil {
		return nil, err
	}
	parsed, err := bundle.NewBundle(converted)
	if err != nil {
		return nil, refuse("its annotations are malformed: %v", err)
	}
	return legacy{Bundle: parsed, above: above}, nil
}

func convert(signature Signature, raw []byte) (*protobundle.Bundle, []*x509.Certificate, error) {
	leaf, err := annotatedCertificates(signature, AnnotationCertificate, 1)
	if err != nil {
		return nil, nil, err
	}
	if len(leaf) != 1 {
		return nil, nil, fmt.Errorf("it lacks annotation %s", AnnotationCertificate)
	}
	above, err := annotatedAbove(signature)
	if err != nil {
		return nil, nil, err
	}
	entry, err := annotatedEntry(signature)
	if err != nil {
		return nil, nil, err
	}
	timestamps, err := annotatedTimestamp(signature)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(signature.Content)
	return &protobundle.Bundle{
		MediaType: legacyBundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{
				Certificate: &protocommon.X509Certificate{RawBytes: leaf[0].Raw},
			},
			TlogEntries:               []*protorekor.TransparencyLogEntry{entry},
			TimestampVerificationData: timestamps,
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     raw,
		}},
	}, above, nil
}

// annotatedCertificates reads at most limit certificates in PEM.
func annotatedCertificates(signature Signature, annotation string, limit int) ([]*x509.Certificate, error) {
	found, err := parseChain([]byte(signature.Annotations[annotation]), limit)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation, err)
	}
	return found, nil
}

// annotatedAbove are the certificates between the signer's and the authority's, which itself comes from the trusted
// root alone.
func annotatedAbove(signature Signature) ([]*x509.Certificate, error) {
	chain, err := annotatedCertificates(signature, AnnotationChain, maxChain)
	if err != nil {
		return nil, err
	}
	var above []*x509.Certificate
	for _, certificate := range chain {
		if certificate.IsCA && !bytes.Equal(certificate.RawIssuer, certificate.RawSubject) {
			above = append(above, certificate)
		}
	}
	return above, nil
}

// rekorBundle is the log's promise to include an entry, as cosign keeps it in an annotation.
type rekorBundle struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           string `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"` //nolint:tagliatelle // The log spells it so.
	}
}

func annotatedEntry(signature Signature) (*protorekor.TransparencyLogEntry, error) {
	annotation := signature.Annotations[AnnotationBundle]
	if annotation == "" {
		return nil, fmt.Errorf("it is in no transparency log: it lacks annotation %s", AnnotationBundle)
	}
	var promised rekorBundle
	if err := decodeStrictly([]byte(annotation), &promised); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationBundle, err)
	}
	body, err := base64.StdEncoding.Strict().DecodeString(promised.Payload.Body)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: its body: %w", AnnotationBundle, err)
	}
	log, err := hex.DecodeString(promised.Payload.LogID)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: its log: %w", AnnotationBundle, err)
	}
	kind, err := kindOf(body)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: its body: %w", AnnotationBundle, err)
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          promised.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: log},
		KindVersion:       kind,
		IntegratedTime:    promised.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: promised.SignedEntryTimestamp},
		CanonicalizedBody: body,
	}, nil
}

func annotatedTimestamp(signature Signature) (*protobundle.TimestampVerificationData, error) {
	annotation := signature.Annotations[AnnotationTimestamp]
	if annotation == "" {
		return nil, nil //nolint:nilnil // Without a timestamp a bundle has no such part.
	}
	var stamped struct {
		SignedRFC3161Timestamp []byte
	}
	if err := decodeStrictly([]byte(annotation), &stamped); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationTimestamp, err)
	}
	if len(stamped.SignedRFC3161Timestamp) == 0 {
		return nil, fmt.Errorf("annotation %s: it has no timestamp", AnnotationTimestamp)
	}
	return &protobundle.TimestampVerificationData{Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{
		{SignedTimestamp: stamped.SignedRFC3161Timestamp},
	}}, nil
}
