package verifytest

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// tokenKey is what the only provider of identities signs its tokens with.
const tokenKey = "a provider of identities"

// Token names somebody whose address of mail was verified, as an OpenID Connect provider does.
func Token(t testing.TB, email, issuer string) string {
	t.Helper()
	part := func(value any) string { return base64.RawURLEncoding.EncodeToString(mustJSON(t, value)) }
	signed := part(object{"alg": "HS256"}) + "." + part(object{"iss": issuer, "sub": "17", "email": email, "email_verified": true})
	return signed + "." + tokenSum(signed)
}

func tokenSum(signed string) string {
	sum := hmac.New(sha256.New, []byte(tokenKey))
	sum.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// Server is a sigstore that is asked by HTTP: its authority as Fulcio, its log as Rekor of version 1. What it issues and records is of
// Noon.
type Server struct {
	*Sigstore
	// URL is where both are.
	URL string

	t testing.TB
}

// Serve has the sigstore asked until the test ends.
func (s *Sigstore) Serve(t testing.TB) *Server {
	t.Helper()
	served := &Server{Sigstore: s, t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/signingCert", func(w http.ResponseWriter, r *http.Request) { tell(w, http.StatusOK)(served.issue(r)) })
	mux.HandleFunc("POST /api/v1/log/entries", func(w http.ResponseWriter, r *http.Request) { tell(w, http.StatusCreated)(served.record(r)) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	served.URL = server.URL
	return served
}

func tell(w http.ResponseWriter, good int) func(any, error) {
	return func(answer any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			good, answer = http.StatusBadRequest, object{"code": 3, "message": err.Error()}
		}
		w.WriteHeader(good)
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// issue gives a certificate to whoever has a token of the provider's, and proves to have the key.
func (s *Server) issue(r *http.Request) (any, error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 || tokenSum(parts[0]+"."+parts[1]) != parts[2] {
		return nil, errors.New("the token is not by a provider that is known")
	}
	var who struct{ Iss, Email string }
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(claims, &who)
	}
	if err != nil {
		return nil, err
	}
	var asked struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Algorithm, Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		return nil, errors.New("there is no key")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(who.Email))
	if key, ok := public.(*ecdsa.PublicKey); !ok || !ecdsa.VerifyASN1(key, sum[:], asked.PublicKeyRequest.ProofOfPossession) {
		return nil, errors.New("the key is not proved to be there")
	}
	certificate := s.certificate(s.t, public, Signing{Identity: who.Email, Issuer: who.Iss})
	return object{"signedCertificateEmbeddedSct": object{"chain": object{"certificates": []string{
		pemOf(certificate), pemOf(s.issuing.certificate), pemOf(s.root.certificate),
	}}}}, nil
}

// record takes a signed envelope in, if it is by the certificate.
func (s *Server) record(r *http.Request) (any, error) {
	var asked struct {
		Kind, APIVersion string
		Spec             struct {
			ProposedContent struct {
				Envelope  string
				Verifiers [][]byte
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	proposed := asked.Spec.ProposedContent
	if asked.Kind != "dsse" || asked.APIVersion != "0.0.1" || len(proposed.Verifiers) != 1 {
		return nil, errors.New("only signed envelopes with one certificate are recorded")
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal([]byte(proposed.Envelope), &envelope); err != nil || len(envelope.Signatures) != 1 {
		return nil, errors.Join(errors.New("it has not one signature"), err)
	}
	block, _ := pem.Decode(proposed.Verifiers[0])
	if block == nil {
		return nil, errors.New("there is no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	if err == nil {
		err = certificate.CheckSignature(x509.ECDSAWithSHA256, dsse.PAE(envelope.PayloadType, payload), signature)
	}
	if err != nil {
		return nil, err
	}
	return s.entry(r, payload, signature, proposed.Verifiers[0])
}

// entry is what the log answers with.
func (s *Server) entry(r *http.Request, payload, signature, verifier []byte) (any, error) {
	body, err := dsseBody(payload, signature, verifier)
	if err != nil {
		return nil, err
	}
	proof, err := s.log.include(r.Context(), body)
	if err != nil {
		return nil, err
	}
	seen, promise, err := s.log.promise(body, Noon().Add(time.Minute))
	if err != nil {
		return nil, err
	}
	return object{hex.EncodeToString(proof.GetRootHash()): object{
		"body": seen.Body, "integratedTime": seen.IntegratedTime, "logID": seen.LogID, "logIndex": seen.LogIndex,
		"verification": object{"signedEntryTimestamp": promise, "inclusionProof": object{
			"checkpoint": proof.GetCheckpoint().GetEnvelope(), "hashes": []string{}, "logIndex": 0,
			"rootHash": hex.EncodeToString(proof.GetRootHash()), "treeSize": proof.GetTreeSize(),
		}},
	}}, nil
}
