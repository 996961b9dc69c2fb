package publish

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
)

// What the log records, how much of an answer is read, and how long it may take to its end.
const (
	entryKind, entryVersion = "dsse", "0.0.1"
	maxAnswer               = 1 << 20
	maxWait                 = 2 * time.Minute
)

// recorded is an entry of the log as it answers with it.
type recorded struct {
	Body           []byte `json:"body"`
	IntegratedTime int64  `json:"integratedTime"`
	LogID          string `json:"logID"`
	LogIndex       int64  `json:"logIndex"`
	Verification   struct {
		SignedEntryTimestamp []byte `json:"signedEntryTimestamp"`
		InclusionProof       struct {
			Checkpoint string   `json:"checkpoint"`
			Hashes     []string `json:"hashes"`
			LogIndex   int64    `json:"logIndex"`
			RootHash   string   `json:"rootHash"`
			TreeSize   int64    `json:"treeSize"`
		} `json:"inclusionProof"`
	} `json:"verification"`
}

// record has the log take in the signature, and gives its proof of that.
func (k *Keyless) record(ctx context.Context, statement, signature []byte) (*protorekor.TransparencyLogEntry, error) {
	envelope, err := json.Marshal(dsse.Envelope{
		PayloadType: statementType, Payload: base64.StdEncoding.EncodeToString(statement),
		Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(signature)}},
	})
	if err != nil {
		return nil, err
	}
	var answer map[string]recorded
	if err := k.ask(ctx, k.options.Log, "/api/v1/log/entries", map[string]any{
		"apiVersion": entryVersion, "kind": entryKind,
		"spec": map[string]any{"proposedContent": map[string]any{
			"envelope": string(envelope), "verifiers": [][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.certificate.Raw})},
		}},
	}, &answer, ""); err != nil {
		return nil, err
	}
	for _, one := range answer {
		return one.entry()
	}
	return nil, errors.New("the log has answered with no entry")
}

// entry is it in the words of a bundle.
func (r recorded) entry() (*protorekor.TransparencyLogEntry, error) {
	var failed []error
	decoded := func(text string) []byte {
		raw, err := hex.DecodeString(text)
		failed = append(failed, err)
		return raw
	}
	proof := r.Verification.InclusionProof
	made := &protorekor.TransparencyLogEntry{
		LogIndex: r.LogIndex, LogId: &protocommon.LogId{KeyId: decoded(r.LogID)}, IntegratedTime: r.IntegratedTime, CanonicalizedBody: r.Body,
		KindVersion:      &protorekor.KindVersion{Kind: entryKind, Version: entryVersion},
		InclusionPromise: &protorekor.InclusionPromise{SignedEntryTimestamp: r.Verification.SignedEntryTimestamp},
		InclusionProof: &protorekor.InclusionProof{
			LogIndex: proof.LogIndex, RootHash: decoded(proof.RootHash), TreeSize: proof.TreeSize,
			Checkpoint: &protorekor.Checkpoint{Envelope: proof.Checkpoint},
		},
	}
	for _, hash := range proof.Hashes {
		made.InclusionProof.Hashes = append(made.InclusionProof.Hashes, decoded(hash))
	}
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("read the log's entry: %w", err)
	}
	return made, nil
}

// answered reads an answer, or why there is none.
func answered(response *http.Response, into any) error {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		var why struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(raw, &why) // Where it says nothing, the status does.
		return fmt.Errorf("%s answers %s: %s", response.Request.URL.Host, response.Status, why.Message)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s answers with what is not understood: %w", response.Request.URL.Host, err)
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
