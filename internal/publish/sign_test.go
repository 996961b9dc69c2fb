package publish_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/trust"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

// first0 is when a file of another clone was changed.
var first0 = time.Unix(1, 0)

// newKey is a private key as cosign keeps it, and its public half.
func newKey(t *testing.T, private crypto.Signer) (content, public []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	open, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})
}

// secrets is the Secret that a source names.
type secrets map[string][]byte

func (secrets) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

func (s secrets) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return s, nil
}

// proved is who vouches for the tag, as the controller of OCIRepositories finds it out.
func proved(t *testing.T, site *fixture.Fixture, public []byte) (string, error) {
	t.Helper()
	opener := oci.NewOpener(oci.Options{Client: newClient(t), Credentials: secrets{"cosign.pub": public}, TempDir: t.TempDir(), Trust: trust.Trust{}})
	session, err := opener.Open(t.Context(), &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
		URL: site.URL("modules/foo"), Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Tag: "2.0.0"},
		Verify: &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "key"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	selected, err := session.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verifier, ok := session.(source.Verifier)
	if !ok {
		t.Fatal("the session proves nothing")
	}
	return verifier.Verify(t.Context(), selected)
}

// withoutReferrers makes the registry one that knows nothing of referrers: clients keep the list.
func withoutReferrers(site *fixture.Fixture) {
	site.Always(fixture.NoReferrers())
	site.Always(fixture.Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&silent{w}, r)
	}).On(fixture.Push))
}

// silent does not say that a manifest's subject was noticed.
type silent struct{ http.ResponseWriter }

func (s *silent) WriteHeader(status int) {
	s.Header().Del("OCI-Subject")
	s.ResponseWriter.WriteHeader(status)
}

// TestASourceVerifiesTheSignature: of every kind of key, by that key alone, and a second push signs nothing.
func TestASourceVerifiesTheSignature(t *testing.T) {
	t.Parallel()
	ec := func(curve elliptic.Curve) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return ecdsa.GenerateKey(curve, rand.Reader) }
	}
	for name, generate := range map[string]func() (crypto.Signer, error){
		"P256": ec(elliptic.P256()), "P384": ec(elliptic.P384()), "P521": ec(elliptic.P521()),
		"RSA":     func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"Ed25519": func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
	} {
		for _, api := range []string{"", "WithoutReferrers"} {
			t.Run(name+api, func(t *testing.T) {
				t.Parallel()
				private, err := generate()
				if err != nil {
					t.Fatal(err)
				}
				content, public := newKey(t, private)
				site, client := fixture.ForTest(t, fixture.Options{}), newClient(t)
				if api != "" {
					withoutReferrers(site)
				}
				o := order(site, clone(t))
				unsigned := mustPush(t, client, o)
				if _, err := proved(t, site, public); err == nil {
					t.Error("what is not signed is proved")
				}
				if o.Signer, err = publish.ReadKey(content, []byte(password)); err != nil {
					t.Fatal(err)
				}
				signed := mustPush(t, client, o)
				if !signed.Signed || !signed.Changed || signed.Digest != unsigned.Digest {
					t.Errorf("signed %+v", signed)
				}
				if signer, err := proved(t, site, public); err != nil || !strings.HasPrefix(signer, "key cosign.pub") {
					t.Errorf("signed by %q, %v", signer, err)
				}
				stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
				if err != nil {
					t.Fatal(err)
				}
				_, other := newKey(t, stranger)
				if signer, err := proved(t, site, other); err == nil {
					t.Errorf("another key proves it: %q", signer)
				}
				site.Reset()
				if again := mustPush(t, client, o); again.Changed || !again.Signed || site.Count(fixture.Push) != 0 {
					t.Errorf("signed again: %+v", again)
				}
			})
		}
	}
}

// TestASignatureThatWasNotListedIsListed: where a push was interrupted between a signature and the list of them, which clients keep for
// a registry without referrers, the next push mends it. Some keys sign the same way each time.
func TestASignatureThatWasNotListedIsListed(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, public := newKey(t, private)
	site, client := fixture.ForTest(t, fixture.Options{}), newClient(t)
	withoutReferrers(site)
	var isBroken atomic.Bool
	site.Always(fixture.Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if isBroken.Load() && strings.Contains(r.URL.Path, "/manifests/sha256-") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}).On(fixture.Push))
	o := order(site, clone(t))
	if o.Signer, err = publish.ReadKey(content, []byte(password)); err != nil {
		t.Fatal(err)
	}
	isBroken.Store(true)
	if _, err := publish.Push(t.Context(), client, o); err == nil {
		t.Fatal("the list was written")
	}
	isBroken.Store(false)
	if again := mustPush(t, client, o); !again.Signed {
		t.Errorf("%+v", again)
	}
	if signer, err := proved(t, site, public); err != nil || signer == "" {
		t.Errorf("signed by %q, %v", signer, err)
	}
}

// TestAKeyThatCannotSign: says so, and nothing of itself or its password.
func TestAKeyThatCannotSign(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := newKey(t, private)
	weak, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	unknown, _ := newKey(t, weak)
	for name, test := range map[string]struct {
		content  []byte
		password string
		says     string
	}{
		"Password": {good, "wrong-" + password, "the password does not open it"},
		"Text":     {[]byte("no key"), password, "not an encrypted private key"},
		"Plain":    {[]byte(strings.ReplaceAll(string(good), "ENCRYPTED SIGSTORE ", "")), password, "not an encrypted private key"},
		"Curve":    {unknown, password, "no source could be told to trust it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := publish.ReadKey(test.content, []byte(test.password))
			if !errors.Is(err, publish.ErrKey) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), password) {
				t.Errorf("read: %v", err)
			}
		})
	}
}
