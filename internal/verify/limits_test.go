package verify_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// TestLargeTimestampsAreRefusedUnread gives a timestamp whose reading takes time that grows with its square. The
// signature is good but for that, and the signer anybody: who signed is found out last.
func TestLargeTimestampsAreRefusedUnread(t *testing.T) {
	t.Parallel()
	artifact := verifytest.Artifact(repository, manifest)
	sigstore := verifytest.NewSigstore(t)
	stamped := by()
	stamped.Timestamp = true
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x30, 0x80}, 20_000))
	s := &scene{name: "large", verifier: keyless(t, sigstore.TrustedRoot(t)), artifact: artifact, signature: sigstore.Bundle(t, artifact, stamped)}
	s.edit(t, "large timestamp", func(document map[string]any) {
		stamps := list(at(document, "verificationMaterial", "timestampVerificationData")["rfc3161Timestamps"])
		at(map[string]any{"first": stamps[0]}, "first")["signedTimestamp"] = large
	})
	s.refuses(t, s.forgeries[0])
	simple := annotated(sigstore.SimpleSigning(t, artifact, stamped), verify.AnnotationTimestamp, `{"SignedRFC3161Timestamp":"`+large+`"}`)
	if _, err := s.verifier.Verify(t.Context(), artifact, simple); !errors.Is(err, verify.ErrSignature) {
		t.Errorf("Verify: %v, want ErrSignature", err)
	}
}

// TestABundleTakesNoMultipleOfItsBytes: an empty entry takes three bytes in a bundle, and two hundred when it is read.
func TestABundleTakesNoMultipleOfItsBytes(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	artifact := verifytest.Artifact(repository, manifest)
	verifier := keyless(t, verifytest.NewSigstore(t).TrustedRoot(t))
	entries := strings.Repeat("{},", verify.MaxSignatureBytes/3-100) + "{}"
	for _, list := range []string{`"tlogEntries":[` + entries + `]`, `"x509CertificateChain":{"certificates":[` + entries + `]}`} {
		content := []byte(`{"mediaType":"` + verify.MediaTypeBundle + `","verificationMaterial":{` + list + `}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := verifier.Verify(t.Context(), artifact, verify.Signature{MediaType: verify.MediaTypeBundle, Content: content})
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, verify.ErrSignature) || taken > 4<<20 {
			t.Errorf("%d bytes took %d: %v", len(content), taken, err)
		}
	}
}
