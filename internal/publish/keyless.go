package publish

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
)

// ErrToken says that a token of identity is none.
var ErrToken = errors.New("the token is no token of identity")

// KeylessOptions say who is to sign, and who vouches for that.
type KeylessOptions struct {
	// Token is an OpenID Connect token of identity, for the authority.
	Token string
	// Authority is the URL of a Fulcio, Log that of a Rekor of version 1.
	Authority, Log string
	// Client asks both. It follows no redirect to another host.
	Client *http.Client
	// TrustedRoot is a trusted_root.json by which signatures are proved; without it Roots are asked.
	TrustedRoot []byte
	Roots       *verify.TUFRoots
}

// Keyless signs once: with a key that nobody keeps, for which the authority has issued a certificate to whom the token names.
type Keyless struct {
	options     KeylessOptions
	token       credential.Secret
	subject     string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

// NewKeyless reads the token, and asks nobody yet. The error is ErrToken, and holds nothing of it.
func NewKeyless(options KeylessOptions) (*Keyless, error) {
	parts := strings.Split(options.Token, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%w: it has not three parts", ErrToken)
	}
	var claims struct {
		Subject  string `json:"sub"`
		Email    string `json:"email"`
		Verified any    `json:"email_verified"` // Some write it as text.
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return nil, fmt.Errorf("%w: its claims cannot be read", ErrToken)
	}
	made := &Keyless{options: options, token: credential.NewSecret(options.Token), subject: claims.Subject}
	if claims.Email != "" {
		if claims.Verified != true && claims.Verified != "true" {
			return nil, fmt.Errorf("%w: nobody has verified its address of mail", ErrToken)
		}
		made.subject = claims.Email
	}
	if made.subject == "" {
		return nil, fmt.Errorf("%w: it names nobody", ErrToken)
	}
	if made.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	return made, nil
}

// identify has a certificate issued, which says who signs, and gives the verifier of what just that identity has signed. The error
// holds nothing of the token, whatever the authority says.
func (k *Keyless) identify(ctx context.Context) (_ verify.Verifier, err error) {
	defer func() { err = transport.SafeError(err, k.token) }()
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	public, err := x509.MarshalPKIXPublicKey(k.key.Public())
	if err != nil {
		return nil, err
	}
	possession, err := k.sign([]byte(k.subject))
	if err != nil {
		return nil, err
	}
	type chain struct {
		Chain struct {
			Certificates []string `json:"certificates"`
		} `json:"chain"`
	}
	var answer struct {
		Embedded chain `json:"signedCertificateEmbeddedSct"`
		Detached chain `json:"signedCertificateDetachedSct"`
	}
	if err := k.ask(ctx, k.options.Authority, "/api/v2/signingCert", map[string]any{"publicKeyRequest": map[string]any{
		"publicKey":         map[string]string{"algorithm": "ECDSA", "content": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))},
		"proofOfPossession": possession,
	}}, &answer, k.options.Token); err != nil {
		return nil, fmt.Errorf("ask for a certificate: %w", err)
	}
	for _, text := range append(answer.Embedded.Chain.Certificates, answer.Detached.Chain.Certificates...) {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			continue
		}
		if k.certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		break
	}
	if k.certificate == nil || !k.key.PublicKey.Equal(k.certificate.PublicKey) {
		return nil, errors.New("ask for a certificate: none for the key has come")
	}
	who, err := certificate.SummarizeCertificate(k.certificate)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	exactly := func(text string) string { return "^" + regexp.QuoteMeta(text) + "$" }
	verifier, err := verify.NewCosignKeyless(verify.KeylessOptions{
		TrustedRoot: k.options.TrustedRoot, Roots: k.options.Roots,
		Identities: []verify.Identity{{Issuer: exactly(who.Issuer), Subject: exactly(who.SubjectAlternativeName)}},
	})
	if err != nil {
		return nil, err
	}
	// What nobody could trust is neither looked for, nor written to the log for good.
	return verifier, verifier.Issued(ctx, k.certificate)
}

// bundle says that the digest is signed, and that the log knows of it, in a sigstore bundle.
func (k *Keyless) bundle(ctx context.Context, of digest.Digest) ([]byte, error) {
	statement, err := statementOf(of)
	if err != nil {
		return nil, err
	}
	signature, err := k.sign(dsse.PAE(statementType, statement))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	entry, err := k.record(ctx, statement, signature)
	if err != nil {
		return nil, fmt.Errorf("record the signature: %w", err)
	}
	return bundled(statement, signature, &protobundle.VerificationMaterial{
		Content:     &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: k.certificate.Raw}},
		TlogEntries: []*protorekor.TransparencyLogEntry{entry},
	})
}

func (k *Keyless) sign(message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	return ecdsa.SignASN1(rand.Reader, k.key, sum[:])
}

// ask posts JSON to one of those who vouch, and reads the answer. The token goes over what is encrypted, or stays on this machine.
func (k *Keyless) ask(ctx context.Context, base, path string, body, answer any, token string) error {
	at, err := url.Parse(base)
	if err != nil || at.Host == "" || at.Scheme != "https" && (at.Scheme != "http" || !isLoopback(at.Hostname())) {
		return fmt.Errorf("%q is no https URL", base)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.JoinPath(path).String(), bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := k.options.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // It was only read.
	return answered(response, answer)
}
