package publish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/tle"
)

// What the log records, how much of an answer is read, and how long it may take to its end.
const (
	entryKind, entryVersion = "dsse", "0.0.1"
	maxAnswer               = 1 << 20
	maxWait                 = 2 * time.Minute
)

// record has the log take in the signature, and gives its proof of that.
func (k *Keyless) record(ctx context.Context, statement, signature []byte) (*protorekor.TransparencyLogEntry, error) {
	envelope, err := json.Marshal(dsse.Envelope{
		PayloadType: statementType, Payload: base64.StdEncoding.EncodeToString(statement),
		Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(signature)}},
	})
	if err != nil {
		return nil, err
	}
	var answer models.LogEntry
	if err := k.ask(ctx, k.options.Log, "/api/v1/log/entries", map[string]any{
		"apiVersion": entryVersion, "kind": entryKind,
		"spec": map[string]any{"proposedContent": map[string]any{
			"envelope": string(envelope), "verifiers": [][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.certificate.Raw})},
		}},
	}, &answer, ""); err != nil {
		return nil, err
	}
	for _, one := range answer {
		err := one.Validate(strfmt.Default)
		if proof := one.Verification; err == nil && (proof == nil || proof.InclusionProof == nil) {
			err = errors.New("it proves nothing")
		}
		if err != nil {
			return nil, fmt.Errorf("read the log's entry: %w", err)
		}
		return tle.GenerateTransparencyLogEntry(one)
	}
	return nil, errors.New("the log has answered with no entry")
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
