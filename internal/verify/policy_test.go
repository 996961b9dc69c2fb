package verify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

func publicPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatalf("encode a key: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestUnusableKeysAreRefused(t *testing.T) {
	t.Parallel()
	good := verifytest.NewKey(t).PublicPEM(t)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	short := &rsa.PublicKey{N: new(big.Int).SetBit(new(big.Int), 1023, 1), E: 65537}
	endless := &rsa.PublicKey{N: new(big.Int).SetBit(new(big.Int), 100_000, 1), E: 65537}
	tests := map[string]struct {
		reason  string
		entries map[string][]byte
		names   string
	}{
		"None":        {reason: "an empty Secret has no key", names: ".pub"},
		"OtherName":   {reason: "only names ending in .pub hold keys", entries: map[string][]byte{"cosign.key": good}, names: ".pub"},
		"Words":       {reason: "a key is PEM", entries: map[string][]byte{"a.pub": good, "cosign.pub": []byte("words")}, names: "cosign.pub"},
		"Empty":       {reason: "an empty entry is no key", entries: map[string][]byte{"cosign.pub": nil}, names: "cosign.pub"},
		"Certificate": {reason: "a certificate is no public key", entries: map[string][]byte{"cosign.pub": verifytest.NewNotary(t).Certificates()["ca.crt"]}, names: "CERTIFICATE"},
		"Two":         {reason: "a second key would be overlooked", entries: map[string][]byte{"cosign.pub": append(good, good...)}, names: "entry of its own"},
		"Curve":       {reason: "P-224 is too weak", entries: map[string][]byte{"cosign.pub": publicPEM(t, p224.Public())}, names: "curve"},
		"ShortRSA":    {reason: "1024 bits are too few", entries: map[string][]byte{"cosign.pub": publicPEM(t, short)}, names: "1024 bits"},
		"EndlessRSA":  {reason: "checking such a key takes too long", entries: map[string][]byte{"cosign.pub": publicPEM(t, endless)}, names: "bits"},
		"Garbage": {
			reason:  "the block must hold a key",
			entries: map[string][]byte{"cosign.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})}, names: "cosign.pub",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := verify.NewCosignKeys(test.entries, verify.CosignOptions{})
			if !errors.Is(err, verify.ErrPolicy) || !strings.Contains(err.Error(), test.names) {
				t.Errorf("NewCosignKeys (%s): %v, want ErrPolicy that says %q", test.reason, err, test.names)
			}
		})
	}
}

func TestKeysOfOlderFormatsAreRead(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	old := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)})
	v, err := verify.NewCosignKeys(map[string][]byte{"cosign.pub": old}, verify.CosignOptions{})
	if err != nil {
		t.Fatalf("NewCosignKeys: %v", err)
	}
	now, err := verify.NewCosignKeys(map[string][]byte{"cosign.pub": publicPEM(t, key.Public())}, verify.CosignOptions{})
	if err != nil {
		t.Fatalf("NewCosignKeys: %v", err)
	}
	if v.Fingerprint() != now.Fingerprint() {
		t.Error("the same key in two formats has two fingerprints")
	}
}

func TestUnusableKeylessOptionsAreRefused(t *testing.T) {
	t.Parallel()
	root := verifytest.NewSigstore(t).TrustedRoot(t)
	tests := map[string]verify.KeylessOptions{
		"no identity":      {TrustedRoot: root},
		"no root":          {Identities: identities()},
		"no issuer":        {TrustedRoot: root, Identities: []verify.Identity{{Subject: ".*"}}},
		"no subject":       {TrustedRoot: root, Identities: []verify.Identity{{Issuer: ".*"}}},
		"issuer regexp":    {TrustedRoot: root, Identities: []verify.Identity{{Issuer: "(", Subject: ".*"}}},
		"subject regexp":   {TrustedRoot: root, Identities: []verify.Identity{{Issuer: ".*", Subject: "(?!a)"}}},
		"root of words":    {TrustedRoot: []byte("words"), Identities: identities()},
		"root of nothing":  {TrustedRoot: []byte("{}"), Identities: identities()},
		"root cut in half": {TrustedRoot: root[:len(root)/2], Identities: identities()},
	}
	for name, options := range tests {
		if _, err := verify.NewCosignKeyless(options); !errors.Is(err, verify.ErrPolicy) {
			t.Errorf("%s: %v, want ErrPolicy", name, err)
		}
	}
}

func TestIdentitiesMatchAnywhereUnlessAnchored(t *testing.T) {
	t.Parallel()
	sigstore := verifytest.NewSigstore(t)
	artifact := verifytest.Artifact(repository, manifest)
	v, err := verify.NewCosignKeyless(verify.KeylessOptions{
		Identities:  []verify.Identity{{Issuer: "nobody", Subject: "nobody"}, {Issuer: `tokens\.forge`, Subject: "team/app"}},
		TrustedRoot: sigstore.TrustedRoot(t),
	})
	if err != nil {
		t.Fatalf("NewCosignKeyless: %v", err)
	}
	mustAccept(t, v, artifact, sigstore.Bundle(t, artifact, by()), "identity "+identity)
}

func TestMirrorsMayKeepSignaturesOfAnotherRepository(t *testing.T) {
	t.Parallel()
	key, sigstore := verifytest.NewKey(t), verifytest.NewSigstore(t)
	mirrored := verifytest.Artifact("mirror.example/copy", manifest)
	anywhere := verify.CosignOptions{AnyRepository: true}
	keys, err := verify.NewCosignKeys(map[string][]byte{"cosign.pub": key.PublicPEM(t)}, anywhere)
	if err != nil {
		t.Fatalf("NewCosignKeys: %v", err)
	}
	mustAccept(t, keys, mirrored, key.SimpleSigning(t, repository, mirrored.Descriptor.Digest), "key cosign.pub")
	mustAccept(t, keys, mirrored, key.SimpleSigning(t, "", mirrored.Descriptor.Digest), "key cosign.pub")
	v, err := verify.NewCosignKeyless(verify.KeylessOptions{CosignOptions: anywhere, Identities: identities(), TrustedRoot: sigstore.TrustedRoot(t)})
	if err != nil {
		t.Fatalf("NewCosignKeyless: %v", err)
	}
	mustAccept(t, v, mirrored, sigstore.SimpleSigning(t, verifytest.Artifact(repository, manifest), by()), "identity")
}

func TestAttestationsAreNotSignatures(t *testing.T) {
	t.Parallel()
	key := verifytest.NewKey(t)
	artifact := verifytest.Artifact(repository, manifest)
	provenance := key.SignStatement(t, verifytest.Statement(t, "https://slsa.dev/provenance/v1", artifact.Descriptor.Digest))
	_, err := withKeys(t, key).Verify(t.Context(), artifact, provenance)
	if !errors.Is(err, verify.ErrUnsigned) || errors.Is(err, verify.ErrSignature) {
		t.Errorf("Verify: %v, want ErrUnsigned: there may be a signature beside it", err)
	}
}

func TestFingerprintsTellPoliciesApart(t *testing.T) {
	t.Parallel()
	one, two := verifytest.NewKey(t).PublicPEM(t), verifytest.NewKey(t).PublicPEM(t)
	root, notary, other := verifytest.NewSigstore(t).TrustedRoot(t), verifytest.NewNotary(t), verifytest.NewNotary(t)
	keys := func(entries map[string][]byte, options verify.CosignOptions) verify.Verifier {
		v, err := verify.NewCosignKeys(entries, options)
		if err != nil {
			t.Fatalf("NewCosignKeys: %v", err)
		}
		return v
	}
	identified := func(root []byte, anywhere bool, list ...verify.Identity) verify.Verifier {
		v, err := verify.NewCosignKeyless(verify.KeylessOptions{
			CosignOptions: verify.CosignOptions{AnyRepository: anywhere}, Identities: list, TrustedRoot: root,
		})
		if err != nil {
			t.Fatalf("NewCosignKeyless: %v", err)
		}
		return v
	}
	notation := func(policy []byte, certificates map[string][]byte) verify.Verifier {
		v, err := verify.NewNotation(policy, certificates, offline(t))
		if err != nil {
			t.Fatalf("NewNotation: %v", err)
		}
		return v
	}
	strict := notary.Policy(t, "strict", []string{"*"}, []string{"*"})
	ab, ba := verify.Identity{Issuer: "a", Subject: "b"}, verify.Identity{Issuer: "ab", Subject: "b"}
	seen := map[string]string{}
	for name, v := range map[string]verify.Verifier{
		"one key":             keys(map[string][]byte{"a.pub": one}, verify.CosignOptions{}),
		"other key":           keys(map[string][]byte{"a.pub": two}, verify.CosignOptions{}),
		"both keys":           keys(map[string][]byte{"a.pub": one, "b.pub": two}, verify.CosignOptions{}),
		"any repository":      keys(map[string][]byte{"a.pub": one}, verify.CosignOptions{AnyRepository: true}),
		"keyless":             identified(root, false, ab),
		"keyless, other":      identified(root, false, ba),
		"keyless, both":       identified(root, false, ab, ba),
		"keyless, any":        identified(root, true, ab),
		"keyless, other root": identified(verifytest.NewSigstore(t).TrustedRoot(t), false, ab),
		"notation":            notation(strict, notary.Certificates()),
		"notation, other CA":  notation(strict, other.Certificates()),
		"notation, audit":     notation(notary.Policy(t, "audit", []string{"*"}, []string{"*"}), notary.Certificates()),
	} {
		fingerprint := v.Fingerprint()
		if !strings.HasPrefix(fingerprint, "sha256:") || len(fingerprint) != 7+64 {
			t.Errorf("%s: fingerprint %q", name, fingerprint)
		}
		if twin, found := seen[fingerprint]; found {
			t.Errorf("%s and %s have the same fingerprint", name, twin)
		}
		seen[fingerprint] = name
	}
	for name, pair := range map[string][2]verify.Verifier{
		"entries renamed": {
			keys(map[string][]byte{"a.pub": one, "b.pub": two}, verify.CosignOptions{}),
			keys(map[string][]byte{"a.pub": two, "b.pub": one, "c.pub": two, "notes": nil}, verify.CosignOptions{}),
		},
		"identities reordered": {identified(root, false, ab, ba), identified(root, false, ba, ab, ba)},
	} {
		if pair[0].Fingerprint() != pair[1].Fingerprint() {
			t.Errorf("%s: the fingerprint changed", name)
		}
	}
}
