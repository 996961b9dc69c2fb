package verifytest

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/pem"
	"errors"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	prototiles "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	"github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/transparency-dev/formats/log"
	sumnote "golang.org/x/mod/sumdb/note"
	"google.golang.org/protobuf/encoding/protojson"
)

// recorder2 writes a bundle's signature into the log as its second version does. It knows P-256 certificates only.
type recorder2 struct{ log *transparencyLog }

// GetTransparencyLogEntry adds the log's entry to the bundle.
func (r recorder2) GetTransparencyLogEntry(ctx context.Context, verifier []byte, made *protobundle.Bundle) error {
	block, _ := pem.Decode(verifier)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("the log only records certificates")
	}
	envelope := made.GetDsseEnvelope()
	sum, raw := made.GetMessageSignature().GetMessageDigest().GetDigest(), made.GetMessageSignature().GetSignature()
	if envelope != nil {
		hashed := sha256.Sum256(dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload()))
		sum, raw = hashed[:], envelope.GetSignatures()[0].GetSig()
	}
	body, err := body2(sum, raw, block.Bytes)
	if err != nil {
		return err
	}
	leaf := sha256.Sum256(append([]byte{0}, body...))
	checkpoint, err := r.checkpoint(ctx, leaf[:])
	if err != nil {
		return err
	}
	made.VerificationMaterial.TlogEntries = append(made.VerificationMaterial.TlogEntries, &protorekor.TransparencyLogEntry{
		LogId: &protocommon.LogId{KeyId: r.log.id[:]}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"},
		InclusionProof: &protorekor.InclusionProof{
			TreeSize: 1, RootHash: leaf[:], Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)},
		},
		CanonicalizedBody: body,
	})
	return nil
}

func body2(sum, raw, certificate []byte) ([]byte, error) {
	encoded, err := protojson.Marshal(&prototiles.Entry{
		ApiVersion: "0.0.2", Kind: "hashedrekord",
		Spec: &prototiles.Spec{Spec: &prototiles.Spec_HashedRekordV002{HashedRekordV002: &prototiles.HashedRekordLogEntryV002{
			Data: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum},
			Signature: &prototiles.Signature{Content: raw, Verifier: &prototiles.Verifier{
				KeyDetails: protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256,
				Verifier:   &prototiles.Verifier_X509Certificate{X509Certificate: &protocommon.X509Certificate{RawBytes: certificate}},
			}},
		}}},
	})
	if err != nil {
		return nil, err
	}
	return jsoncanonicalizer.Transform(encoded)
}

// checkpoint signs the state of a log that has one entry.
func (r recorder2) checkpoint(ctx context.Context, root []byte) ([]byte, error) {
	signer, err := signature.LoadECDSASignerVerifier(r.log.key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	noted, err := note.NewNoteSigner(ctx, logHost, signer)
	if err != nil {
		return nil, err
	}
	state := log.Checkpoint{Origin: logHost, Size: 1, Hash: root}
	return sumnote.Sign(&sumnote.Note{Text: string(state.Marshal())}, noted)
}
