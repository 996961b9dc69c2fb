package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// strangers are verifiers that trust nobody who signed the corpus: nothing that fuzzing finds may be accepted.
func strangers(f *testing.F) []verify.Verifier {
	f.Helper()
	return []verify.Verifier{
		withKeys(f, verifytest.NewKey(f), verifytest.NewKeyOf(f, verifytest.Ed25519)),
		keyless(f, verifytest.NewSigstore(f).TrustedRoot(f)),
		withNotary(f, verifytest.NewNotary(f), "strict"),
	}
}

func refused(t *testing.T, verifiers []verify.Verifier, signature verify.Signature) {
	t.Helper()
	artifact := verifytest.Artifact(repository, manifest)
	for _, v := range verifiers {
		signer, err := v.Verify(t.Context(), artifact, signature)
		if !errors.Is(err, verify.ErrSignature) && !errors.Is(err, verify.ErrUnsigned) || signer != (verify.Signer{}) {
			t.Errorf("%T: signer %+v, error %v", v, signer, err)
		}
	}
}

func FuzzBundle(f *testing.F) {
	artifact := verifytest.Artifact(repository, manifest)
	key, sigstore, notary := verifytest.NewKey(f), verifytest.NewSigstore(f), verifytest.NewNotary(f)
	stamped := by()
	stamped.Timestamp = true
	for _, signature := range []verify.Signature{
		key.Bundle(f, artifact.Descriptor), key.MessageBundle(f, []byte(manifest)), key.EmptyMessage(f, artifact.Descriptor.Digest),
		sigstore.Bundle(f, artifact, stamped), sigstore.MessageBundle(f, []byte(manifest), by()),
		notary.Sign(f, artifact.Descriptor, verify.MediaTypeNotationJWS), notary.Sign(f, artifact.Descriptor, verify.MediaTypeNotationCOSE),
	} {
		f.Add(signature.MediaType, signature.Content)
	}
	verifiers := strangers(f)
	f.Fuzz(func(t *testing.T, mediaType string, content []byte) {
		refused(t, verifiers, verify.Signature{MediaType: mediaType, Content: content})
	})
}

func FuzzSimpleSigning(f *testing.F) {
	artifact := verifytest.Artifact(repository, manifest)
	stamped := by()
	stamped.Timestamp = true
	for _, signature := range []verify.Signature{
		verifytest.NewKey(f).SimpleSigning(f, repository, artifact.Descriptor.Digest),
		verifytest.NewSigstore(f).SimpleSigning(f, artifact, stamped),
	} {
		notes := signature.Annotations
		f.Add(signature.Content, notes[verify.AnnotationSignature], notes[verify.AnnotationCertificate],
			notes[verify.AnnotationChain], notes[verify.AnnotationBundle], notes[verify.AnnotationTimestamp])
	}
	verifiers := strangers(f)
	f.Fuzz(func(t *testing.T, payload []byte, raw, certificate, chain, entry, timestamp string) {
		refused(t, verifiers, verify.Signature{
			MediaType: verify.MediaTypeSimpleSigning, Content: payload,
			Annotations: map[string]string{
				verify.AnnotationSignature: raw, verify.AnnotationCertificate: certificate, verify.AnnotationChain: chain,
				verify.AnnotationBundle: entry, verify.AnnotationTimestamp: timestamp,
			},
		})
	})
}

// FuzzClaims has a trusted key sign any payload: it counts only if it names the artifact.
func FuzzClaims(f *testing.F) {
	key, artifact := verifytest.NewKey(f), verifytest.Artifact(repository, manifest)
	payload := string(verifytest.SimplePayload(repository, artifact.Descriptor.Digest))
	f.Add([]byte(payload))
	f.Add([]byte(strings.Replace(payload, repository, repository+":v1", 1)))
	f.Add([]byte(strings.Replace(payload, `"image":{`, `"image":{"docker-manifest-digest":"sha256:00",`, 1)))
	f.Add([]byte(payload + "{}"))
	v := withKeys(f, key)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 {
			return
		}
		if _, err := v.Verify(t.Context(), artifact, key.SignPayload(t, payload)); err != nil {
			return
		}
		if !json.Valid(payload) || !bytes.Contains(payload, []byte(artifact.Descriptor.Digest.Encoded()[:8])) && !bytes.ContainsRune(payload, '\\') {
			t.Errorf("accepted: %q", payload)
		}
	})
}
