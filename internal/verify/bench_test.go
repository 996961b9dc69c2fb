package verify_test

import (
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// BenchmarkVerify is what one good signature costs, by method.
func BenchmarkVerify(b *testing.B) {
	artifact := verifytest.Artifact(repository, manifest)
	key, sigstore, notary := verifytest.NewKey(b), verifytest.NewSigstore(b), verifytest.NewNotary(b)
	keys, identified, notation := withKeys(b, key), keyless(b, sigstore.TrustedRoot(b)), withNotary(b, notary, "strict")
	for _, method := range []struct {
		name      string
		verifier  verify.Verifier
		signature verify.Signature
	}{
		{"key/simple", keys, key.SimpleSigning(b, repository, artifact.Descriptor.Digest)},
		{"key/bundle", keys, key.Bundle(b, artifact.Descriptor)},
		{"keyless/simple", identified, sigstore.SimpleSigning(b, artifact, by())},
		{"keyless/bundle", identified, sigstore.Bundle(b, artifact, by())},
		{"notation/jws", notation, notary.Sign(b, artifact.Descriptor, verify.MediaTypeNotationJWS)},
		{"notation/cose", notation, notary.Sign(b, artifact.Descriptor, verify.MediaTypeNotationCOSE)},
	} {
		b.Run(method.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := method.verifier.Verify(b.Context(), artifact, method.signature); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
