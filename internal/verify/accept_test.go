package verify_test

import (
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

const (
	repository = "registry.example:5000/team/app"
	manifest   = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`
	identity   = "https://forge.example/team/app/.ci/release.yaml@refs/tags/v1"
	issuer     = "https://tokens.forge.example"
)

// offline is a client that fails the test when it is used.
func offline(tb testing.TB) *http.Client {
	tb.Helper()
	return &http.Client{Transport: unreachable{tb}}
}

type unreachable struct{ t testing.TB }

func (u unreachable) RoundTrip(request *http.Request) (*http.Response, error) {
	u.t.Errorf("the network was used: %s", request.URL)
	return nil, http.ErrUseLastResponse
}

func withKeys(tb testing.TB, keys ...*verifytest.Key) *verify.CosignKeys {
	tb.Helper()
	entries := map[string][]byte{"notes.txt": []byte("not a key")}
	for i, key := range keys {
		entries[string(rune('a'+i))+".pub"] = key.PublicPEM(tb)
	}
	v, err := verify.NewCosignKeys(entries, verify.CosignOptions{})
	if err != nil {
		tb.Fatalf("NewCosignKeys: %v", err)
	}
	return v
}

func by() verifytest.Signing { return verifytest.Signing{Identity: identity, Issuer: issuer} }

func identities() []verify.Identity {
	return []verify.Identity{{Issuer: `^https://tokens\.forge\.example$`, Subject: `^https://forge\.example/team/app/`}}
}

func keyless(tb testing.TB, trustedRoot []byte) *verify.CosignKeyless {
	tb.Helper()
	v, err := verify.NewCosignKeyless(verify.KeylessOptions{Identities: identities(), TrustedRoot: trustedRoot})
	if err != nil {
		tb.Fatalf("NewCosignKeyless: %v", err)
	}
	return v
}

func withNotary(tb testing.TB, notary *verifytest.Notary, level string) *verify.Notation {
	tb.Helper()
	policy := notary.Policy(tb, level, []string{repository}, []string{notary.SignerIdentity()})
	v, err := verify.NewNotation(policy, notary.Certificates(), offline(tb))
	if err != nil {
		tb.Fatalf("NewNotation: %v", err)
	}
	return v
}

func mustAccept(t *testing.T, v verify.Verifier, artifact verify.Artifact, signature verify.Signature, signer string) {
	t.Helper()
	got, err := v.Verify(t.Context(), artifact, signature)
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	if !got.Enforced || got.Logged != "" || !strings.HasPrefix(got.Name, signer) {
		t.Errorf("Verify: signer %+v, want an enforced one that begins with %q", got, signer)
	}
}

func TestEveryKindOfKeyIsAccepted(t *testing.T) {
	t.Parallel()
	artifact := verifytest.Artifact(repository, manifest)
	for _, kind := range []verifytest.Kind{
		verifytest.P256, verifytest.P384, verifytest.P384SHA256, verifytest.P521, verifytest.RSA2048, verifytest.Ed25519,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			key := verifytest.NewKeyOf(t, kind)
			v := withKeys(t, verifytest.NewKey(t), key)
			mustAccept(t, v, artifact, key.SimpleSigning(t, repository, artifact.Descriptor.Digest), "key b.pub (sha256:")
			mustAccept(t, v, artifact, key.Bundle(t, artifact.Descriptor), "key b.pub (sha256:")
			switch kind {
			case verifytest.P256, verifytest.P384SHA256, verifytest.RSA2048:
				mustAccept(t, v, artifact, key.MessageBundle(t, []byte(manifest)), "key b.pub (sha256:")
			default:
				// A digest made with another hash cannot be compared with the artifact's.
			}
		})
	}
}

func TestKeylessIsAccepted(t *testing.T) {
	t.Parallel()
	artifact := verifytest.Artifact(repository, manifest)
	sigstore := verifytest.NewSigstore(t)
	stamped := by()
	stamped.Timestamp = true
	byTimestampAlone := stamped
	byTimestampAlone.NoPromise = true
	byP384 := by()
	byP384.Kind = verifytest.P384
	byChain := by()
	byChain.Chain = true
	version2 := by()
	version2.Timestamp, version2.LogVersion2 = true, true
	name := "identity " + identity + " issued by " + issuer

	tests := map[string]struct {
		reason    string
		root      []byte
		identity  string
		signature verify.Signature
	}{
		"Bundle":             {reason: "what cosign makes since version 3", signature: sigstore.Bundle(t, artifact, by())},
		"BundleOfMessage":    {reason: "a message signature names the digest as well", signature: sigstore.MessageBundle(t, []byte(manifest), by())},
		"BundleStamped":      {reason: "a timestamp beside the log's time", signature: sigstore.Bundle(t, artifact, stamped)},
		"BundleStampedAlone": {reason: "a timestamp in place of the log's time", signature: sigstore.Bundle(t, artifact, byTimestampAlone)},
		"BundleP384":         {reason: "the leaf may have another curve", signature: sigstore.Bundle(t, artifact, byP384)},
		"Simple":             {reason: "what cosign made before", signature: sigstore.SimpleSigning(t, artifact, by())},
		"SimpleStamped":      {reason: "with a timestamp", signature: sigstore.SimpleSigning(t, artifact, stamped)},
		"BundleChain":        {reason: "a bundle may bring the certificate above the signer's", root: sigstore.TrustedRootWithoutIntermediate(t), signature: sigstore.Bundle(t, artifact, byChain)},
		"SimpleChain":        {reason: "so do simple signatures", root: sigstore.TrustedRootWithoutIntermediate(t), signature: sigstore.SimpleSigning(t, artifact, by())},
		"BundleLog2":         {reason: "the second version of the log", signature: sigstore.Bundle(t, artifact, version2)},
		"MessageLog2":        {reason: "the second version of the log", signature: sigstore.MessageBundle(t, []byte(manifest), version2)},
		"WithoutCT":          {reason: "a private root may know no certificate log", root: sigstore.TrustedRootWithoutCT(t), signature: sigstore.Bundle(t, artifact, by())},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			trusted := test.root
			if trusted == nil {
				trusted = sigstore.TrustedRoot(t)
			}
			mustAccept(t, keyless(t, trusted), artifact, test.signature, name)
		})
	}
}

func TestKeysNeedNoLogAndMayHaveOne(t *testing.T) {
	t.Parallel()
	key, artifact := verifytest.NewKey(t), verifytest.Artifact(repository, manifest)
	mustAccept(t, withKeys(t, key), artifact, verifytest.NewSigstore(t).BundleByKey(t, artifact, key), "key a.pub")
}

func TestNotationIsAccepted(t *testing.T) {
	t.Parallel()
	artifact := verifytest.Artifact(repository, manifest)
	notary := verifytest.NewNotary(t)
	for _, mediaType := range []string{verify.MediaTypeNotationJWS, verify.MediaTypeNotationCOSE} {
		for _, level := range []string{"strict", "permissive", "audit"} {
			t.Run(level+" "+mediaType, func(t *testing.T) {
				t.Parallel()
				mustAccept(t, withNotary(t, notary, level), artifact, notary.Sign(t, artifact.Descriptor, mediaType), "certificate CN=signer")
			})
		}
	}
}
