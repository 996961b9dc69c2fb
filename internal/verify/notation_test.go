package verify_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

func notationOf(t *testing.T, notary *verifytest.Notary, policy []byte, client *http.Client) *verify.Notation {
	t.Helper()
	v, err := verify.NewNotation(policy, notary.Certificates(), client)
	if err != nil {
		t.Fatalf("NewNotation: %v", err)
	}
	return v
}

func TestUnusableTrustPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	notary := verifytest.NewNotary(t)
	good := notary.Policy(t, "strict", []string{"*"}, []string{"*"})
	certificates := notary.Certificates()
	client := offline(t)
	tests := map[string]struct {
		reason       string
		policy       []byte
		certificates map[string][]byte
		client       *http.Client
		names        string
	}{
		"NoPolicy":      {reason: "a policy is required", certificates: certificates, client: client, names: "trustpolicy.json"},
		"Words":         {reason: "it is JSON", policy: []byte("words"), certificates: certificates, client: client, names: "trustpolicy.json"},
		"Empty":         {reason: "it must say something", policy: []byte("{}"), certificates: certificates, client: client, names: "trustpolicy.json"},
		"Twice":         {reason: "of two versions none is the right one", policy: []byte(strings.Replace(string(good), `{"trust`, `{"version":"1.0","trust`, 1)), certificates: certificates, client: client, names: "twice"},
		"Level":         {reason: "the level must exist", policy: notary.Policy(t, "lax", []string{"*"}, []string{"*"}), certificates: certificates, client: client, names: "trustpolicy.json"},
		"Scope":         {reason: "a scope is a repository", policy: notary.Policy(t, "strict", []string{"oci://a/b"}, []string{"*"}), certificates: certificates, client: client, names: "trustpolicy.json"},
		"NoCertificate": {reason: "a policy without certificates trusts nobody", policy: good, client: client, names: ".crt"},
		"OtherName":     {reason: "only .crt and .pem hold certificates", policy: good, certificates: map[string][]byte{"ca.txt": certificates["ca.crt"]}, client: client, names: ".crt"},
		"Key":           {reason: "a key is no certificate", policy: good, certificates: map[string][]byte{"ca.pem": verifytest.NewKey(t).PublicPEM(t)}, client: client, names: "ca.pem"},
		"Garbage":       {reason: "a certificate must parse", policy: good, certificates: map[string][]byte{"ca.crt": []byte("words")}, client: client, names: "ca.crt"},
		"Trailing":      {reason: "what follows would be overlooked", policy: good, certificates: map[string][]byte{"ca.crt": append(certificates["ca.crt"], "words"...)}, client: client, names: "ca.crt"},
		"NoClient":      {reason: "revocation needs a client", policy: good, certificates: certificates, names: "client"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := verify.NewNotation(test.policy, test.certificates, test.client)
			if !errors.Is(err, verify.ErrPolicy) || !strings.Contains(err.Error(), test.names) {
				t.Errorf("NewNotation (%s): %v, want ErrPolicy that says %q", test.reason, err, test.names)
			}
		})
	}
}

func TestAuditReportsAStrangerAsNotEnforced(t *testing.T) {
	t.Parallel()
	notary, stranger := verifytest.NewNotary(t), verifytest.NewRevocableNotary(t)
	artifact := verifytest.Artifact(repository, manifest)
	// The client fails the test: a stranger's certificate must not send us to any address.
	v := withNotary(t, notary, "audit")
	signer, err := v.Verify(t.Context(), artifact, stranger.Sign(t, artifact.Descriptor, verify.MediaTypeNotationJWS))
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	if signer.Enforced || !strings.Contains(signer.Logged, "authenticity") {
		t.Errorf("signer %+v, want one that is not enforced, and why", signer)
	}
	if _, err := v.Verify(t.Context(), verifytest.Artifact(repository, "other"), stranger.Sign(t, artifact.Descriptor, verify.MediaTypeNotationJWS)); !errors.Is(err, verify.ErrSignature) {
		t.Errorf("Verify of another artifact: %v, want ErrSignature under any policy", err)
	}
}

func TestPermissiveLogsWhatStrictEnforces(t *testing.T) {
	t.Parallel()
	notary := verifytest.NewNotary(t)
	artifact := verifytest.Artifact(repository, manifest)
	now := time.Now()
	expired := notary.SignEnvelope(t, artifact.Descriptor, verify.MediaTypeNotationCOSE, verifytest.Envelope{
		SignedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour),
	})
	if _, err := withNotary(t, notary, "strict").Verify(t.Context(), artifact, expired); !errors.Is(err, verify.ErrSignature) {
		t.Errorf("strict: %v, want ErrSignature", err)
	}
	signer, err := withNotary(t, notary, "permissive").Verify(t.Context(), artifact, expired)
	if err != nil || !signer.Enforced || !strings.Contains(signer.Logged, "expiry") {
		t.Errorf("permissive: signer %+v, error %v; want an enforced signer and the expiry logged", signer, err)
	}
}

func TestSkipIsAskedForByRepository(t *testing.T) {
	t.Parallel()
	notary := verifytest.NewNotary(t)
	skipping := notationOf(t, notary, notary.Policy(t, "skip", []string{"docker.io/library/app"}, []string{"*"}), offline(t))
	for name, want := range map[string]bool{"docker.io/library/app": true, "index.docker.io/library/app": true, "docker.io/app": true} {
		if skip, err := skipping.Skip(t.Context(), name); err != nil || skip != want {
			t.Errorf("Skip(%q) = %v, %v, want %v", name, skip, err, want)
		}
	}
	if skip, err := skipping.Skip(t.Context(), "docker.io/library/other"); skip || !errors.Is(err, verify.ErrPolicy) {
		t.Errorf("Skip of a repository out of scope = %v, %v, want ErrPolicy", skip, err)
	}
	strict := notationOf(t, notary, notary.Policy(t, "strict", []string{"*"}, []string{"*"}), offline(t))
	if skip, err := strict.Skip(t.Context(), repository); skip || err != nil {
		t.Errorf("Skip under a strict policy = %v, %v", skip, err)
	}
}

func TestRevocationIsAskedForThroughTheClient(t *testing.T) {
	t.Parallel()
	artifact := verifytest.Artifact(repository, manifest)
	tests := map[string]struct {
		reason   string
		level    string
		spoil    func(*verifytest.Notary)
		enforced error
		logged   string
	}{
		"Good":              {reason: "the certificate is not on the list", level: "strict"},
		"Revoked":           {reason: "strict enforces revocation", level: "strict", spoil: (*verifytest.Notary).Revoke, enforced: verify.ErrSignature},
		"RevokedPermissive": {reason: "permissive logs it", level: "permissive", spoil: (*verifytest.Notary).Revoke, logged: "revoked"},
		"Unknown":           {reason: "what is not known is not good under strict", level: "strict", spoil: (*verifytest.Notary).FailList, enforced: verify.ErrSignature},
		"UnknownPermissive": {reason: "permissive logs it", level: "permissive", spoil: (*verifytest.Notary).FailList, logged: "revocation"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notary := verifytest.NewRevocableNotary(t)
			if test.spoil != nil {
				test.spoil(notary)
			}
			asked := 0
			client := &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
				asked++
				return http.DefaultTransport.RoundTrip(request)
			})}
			v := notationOf(t, notary, notary.Policy(t, test.level, []string{"*"}, []string{"*"}), client)
			signer, err := v.Verify(t.Context(), artifact, notary.Sign(t, artifact.Descriptor, verify.MediaTypeNotationJWS))
			if !errors.Is(err, test.enforced) {
				t.Errorf("Verify (%s): %v, want %v", test.reason, err, test.enforced)
			}
			if test.enforced == nil && (!signer.Enforced || !strings.Contains(signer.Logged, test.logged) || (test.logged == "") != (signer.Logged == "")) {
				t.Errorf("Verify (%s): signer %+v, want one with %q logged", test.reason, signer, test.logged)
			}
			if asked == 0 {
				t.Error("nobody was asked through the client")
			}
		})
	}
}

func TestTimestampsProveSignaturesOfExpiredCertificates(t *testing.T) {
	t.Parallel()
	notary, artifact := verifytest.NewExpiredNotary(t), verifytest.Artifact(repository, manifest)
	then := time.Now().Add(-2 * time.Hour)
	stamped := verifytest.Envelope{SignedAt: then, Timestamped: true, StampedAt: then}
	late := verifytest.Envelope{SignedAt: then, Timestamped: true}
	v := notationOf(t, notary, notary.PolicyWithStores(t, "strict", []string{"*"}, []string{"*"}, "ca:any", "tsa:any"), offline(t))
	for _, mediaType := range []string{verify.MediaTypeNotationJWS, verify.MediaTypeNotationCOSE} {
		mustAccept(t, v, artifact, notary.SignEnvelope(t, artifact.Descriptor, mediaType, stamped), "certificate CN=signer")
		for name, made := range map[string]verifytest.Envelope{"stamped after the expiry": late, "not stamped": {SignedAt: then}} {
			if _, err := v.Verify(t.Context(), artifact, notary.SignEnvelope(t, artifact.Descriptor, mediaType, made)); !errors.Is(err, verify.ErrSignature) {
				t.Errorf("%s: %v, want ErrSignature", name, err)
			}
		}
		stranger := notationOf(t, notary, notary.Policy(t, "strict", []string{"*"}, []string{"*"}), offline(t))
		if _, err := stranger.Verify(t.Context(), artifact, notary.SignEnvelope(t, artifact.Descriptor, mediaType, stamped)); !errors.Is(err, verify.ErrSignature) {
			t.Errorf("a policy without timestamp authorities: %v, want ErrSignature", err)
		}
	}
}

func TestSigningAuthoritiesHaveStoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	notary, artifact := verifytest.NewNotary(t), verifytest.Artifact(repository, manifest)
	signed := notary.SignEnvelope(t, artifact.Descriptor, verify.MediaTypeNotationJWS, verifytest.Envelope{Scheme: signature.SigningSchemeX509SigningAuthority})
	policy := notary.PolicyWithStores(t, "strict", []string{"*"}, []string{"*"}, "signingAuthority:any")
	mustAccept(t, notationOf(t, notary, policy, offline(t)), artifact, signed, "certificate CN=signer")
	if _, err := withNotary(t, notary, "strict").Verify(t.Context(), artifact, signed); !errors.Is(err, verify.ErrSignature) {
		t.Errorf("a policy that names authorities of the other kind: %v, want ErrSignature", err)
	}
}
