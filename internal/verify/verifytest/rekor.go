package verifytest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor/pkg/util"
	"github.com/sigstore/sigstore/pkg/signature"
)

// logHost is the host that the transparency log signs its checkpoints as.
const logHost = "log.example"

// firstIndex is where the log numbers its entries from; all indices have four digits.
const firstIndex = 1000

// transparencyLog is a log of signatures with one entry a tree: its proofs are real and short. Its entries are
// numbered across all trees, as in a log made of several.
type transparencyLog struct {
	key   *ecdsa.PrivateKey
	id    [sha256.Size]byte
	count atomic.Int64
}

func newTransparencyLog(t testing.TB) *transparencyLog {
	t.Helper()
	log := &transparencyLog{key: newECKey(t)}
	log.id = keyID(t, log.key.Public())
	return log
}

// promised is an entry as the log's promise covers it. The names' order is the canonical one.
type promised struct {
	Body           string `json:"body"`
	IntegratedTime int64  `json:"integratedTime"`
	LogID          string `json:"logID"`
	LogIndex       int64  `json:"logIndex"`
}

// promise signs that the entry was seen at the time, under the next index.
func (l *transparencyLog) promise(body []byte, at time.Time) (entry promised, signed []byte, err error) {
	entry = promised{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at.Unix(),
		LogID: hex.EncodeToString(l.id[:]), LogIndex: firstIndex + l.count.Add(1),
	}
	canonical, err := json.Marshal(entry)
	if err != nil {
		return promised{}, nil, err
	}
	sum := sha256.Sum256(canonical)
	signed, err = ecdsa.SignASN1(rand.Reader, l.key, sum[:])
	return entry, signed, err
}

// include proves that the entry is in the log.
func (l *transparencyLog) include(ctx context.Context, body []byte) (*protorekor.InclusionProof, error) {
	leaf := sha256.Sum256(append([]byte{0}, body...))
	signer, err := signature.LoadECDSASigner(l.key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	checkpoint, err := util.CreateAndSignCheckpoint(ctx, logHost, 1, 1, leaf[:], signer)
	if err != nil {
		return nil, err
	}
	return &protorekor.InclusionProof{
		TreeSize: 1, RootHash: leaf[:], Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)},
	}, nil
}

// recorder writes a bundle's signature into the log; it is what the bundle signer asks for.
type recorder struct {
	log       *transparencyLog
	at        time.Time
	noPromise bool
}

// GetTransparencyLogEntry adds the log's entry to the bundle.
func (r recorder) GetTransparencyLogEntry(ctx context.Context, verifier []byte, made *protobundle.Bundle) error {
	body, kind, err := entryOf(verifier, made)
	if err != nil {
		return err
	}
	proof, err := r.log.include(ctx, body)
	if err != nil {
		return err
	}
	entry := &protorekor.TransparencyLogEntry{
		LogId: &protocommon.LogId{KeyId: r.log.id[:]}, KindVersion: &protorekor.KindVersion{Kind: kind, Version: "0.0.1"},
		IntegratedTime: r.at.Unix(), InclusionProof: proof, CanonicalizedBody: body,
	}
	if !r.noPromise {
		seen, signed, err := r.log.promise(body, r.at)
		if err != nil {
			return err
		}
		entry.LogIndex = seen.LogIndex
		entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: signed}
	}
	made.VerificationMaterial.TlogEntries = append(made.VerificationMaterial.TlogEntries, entry)
	return nil
}

func entryOf(verifier []byte, made *protobundle.Bundle) (body []byte, kind string, err error) {
	if envelope := made.GetDsseEnvelope(); envelope != nil {
		body, err = dsseBody(envelope.GetPayload(), envelope.GetSignatures()[0].GetSig(), verifier)
		return body, "dsse", err
	}
	message := made.GetMessageSignature()
	if message.GetMessageDigest().GetAlgorithm() != protocommon.HashAlgorithm_SHA2_256 {
		return nil, "", errors.New("the log only records sha256")
	}
	body, err = hashedBody(message.GetMessageDigest().GetDigest(), message.GetSignature(), verifier)
	return body, "hashedrekord", err
}

type object map[string]any

func hashOf(sum []byte) object {
	return object{"algorithm": "sha256", "value": hex.EncodeToString(sum)}
}

// hashedBody is an entry about a signature over a digest; verifier is a key or certificate in PEM.
func hashedBody(sum, raw, verifier []byte) ([]byte, error) {
	return json.Marshal(object{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": object{
		"data":      object{"hash": hashOf(sum)},
		"signature": object{"content": raw, "publicKey": object{"content": verifier}},
	}})
}

// dsseBody is an entry about a signed envelope.
func dsseBody(payload, raw, verifier []byte) ([]byte, error) {
	sum := sha256.Sum256(payload)
	return json.Marshal(object{"apiVersion": "0.0.1", "kind": "dsse", "spec": object{
		"envelopeHash": hashOf(sum[:]), "payloadHash": hashOf(sum[:]),
		"signatures": []object{{"signature": base64.StdEncoding.EncodeToString(raw), "verifier": verifier}},
	}})
}
