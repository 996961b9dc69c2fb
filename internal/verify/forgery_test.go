package verify_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// scene is a verifier with an artifact and a signature that it accepts, and what must not be accepted in their place.
type scene struct {
	name      string
	verifier  verify.Verifier
	artifact  verify.Artifact
	signature verify.Signature
	forgeries []forgery
}

// forgery changes one thing about a scene.
type forgery struct {
	name      string
	verifier  verify.Verifier
	artifact  *verify.Artifact
	signature *verify.Signature
}

func (s *scene) forge(name string, signature verify.Signature) {
	s.forgeries = append(s.forgeries, forgery{name: name, signature: &signature})
}

func (s *scene) about(name string, artifact verify.Artifact) {
	s.forgeries = append(s.forgeries, forgery{name: name, artifact: &artifact})
}

func (s *scene) under(name string, verifier verify.Verifier) {
	s.forgeries = append(s.forgeries, forgery{name: name, verifier: verifier})
}

// annotated is the signature with an annotation changed; an empty value removes it.
func annotated(signature verify.Signature, annotation, value string) verify.Signature {
	signature.Annotations = maps.Clone(signature.Annotations)
	signature.Annotations[annotation] = value
	if value == "" {
		delete(signature.Annotations, annotation)
	}
	return signature
}

func containing(signature verify.Signature, content string) verify.Signature {
	signature.Content = []byte(content)
	return signature
}

// common adds the forgeries that make sense for every method.
func (s *scene) common() {
	content := string(s.signature.Content)
	s.about("other digest", verifytest.Artifact(repository, manifest+" "))
	other := s.artifact
	other.Descriptor.Digest = "sha512:" + other.Descriptor.Digest[7:] + other.Descriptor.Digest[7:]
	s.about("other digest algorithm", other)
	none := s.artifact
	none.Descriptor.Digest = ""
	s.about("no digest", none)
	s.forge("empty", containing(s.signature, ""))
	s.forge("too large", containing(s.signature, content+strings.Repeat(" ", verify.MaxSignatureBytes)))
	for _, part := range []int{1, 10, 50, 90, 99} {
		s.forge("truncated", containing(s.signature, content[:len(content)*part/100]))
	}
	s.forge("last byte missing", containing(s.signature, content[:len(content)-1]))
	s.forge("null", containing(s.signature, "null"))
	s.forge("empty object", containing(s.signature, "{}"))
	s.forge("deep", containing(s.signature, strings.Repeat("[", 500_000)))
	s.forge("followed by another", containing(s.signature, content+content))
	for _, mediaType := range []string{
		"", "application/json", verify.MediaTypeBundle, verify.MediaTypeSimpleSigning,
		verify.MediaTypeNotationJWS, verify.MediaTypeNotationCOSE,
	} {
		if mediaType != s.signature.MediaType {
			mistyped := s.signature
			mistyped.MediaType = mediaType
			s.forge("media type "+mediaType, mistyped)
		}
	}
}

func TestForgeriesAreRefused(t *testing.T) {
	t.Parallel()
	scenes := []*scene{simpleByKey(t), bundleByKey(t), messageByKey(t), emptyMessageByKey(t)}
	sigstore := verifytest.NewSigstore(t)
	scenes = append(scenes, simpleKeyless(t, sigstore), bundleKeyless(t, sigstore), messageKeyless(t, sigstore), bundleOfVersion2(t, sigstore))
	scenes = append(scenes, byNotary(t, verify.MediaTypeNotationJWS), byNotary(t, verify.MediaTypeNotationCOSE))
	tried := 0
	for _, s := range scenes {
		s.common()
		tried += len(s.forgeries)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, forged := range s.forgeries {
				s.refuses(t, forged)
			}
		})
	}
	if tried < 100 {
		t.Errorf("only %d forgeries were tried", tried)
	}
	t.Logf("%d forgeries", tried)
}

// refuses tries the forgery, and the scene without it as the control.
func (s *scene) refuses(t *testing.T, forged forgery) {
	t.Helper()
	if _, err := s.verifier.Verify(t.Context(), s.artifact, s.signature); err != nil {
		t.Fatalf("%s: the control is refused: %v", forged.name, err)
	}
	verifier, artifact, signature := s.verifier, s.artifact, s.signature
	if forged.verifier != nil {
		verifier = forged.verifier
	}
	if forged.artifact != nil {
		artifact = *forged.artifact
	}
	if forged.signature != nil {
		signature = *forged.signature
	}
	signer, err := verifier.Verify(t.Context(), artifact, signature)
	if err == nil {
		t.Errorf("%s: accepted as made by %q", forged.name, signer.Name)
		return
	}
	if signer != (verify.Signer{}) {
		t.Errorf("%s: refused, and yet a signer is named: %+v", forged.name, signer)
	}
	if !errors.Is(err, verify.ErrSignature) && !errors.Is(err, verify.ErrUnsigned) && !errors.Is(err, verify.ErrPolicy) {
		t.Errorf("%s: error of no known kind: %v", forged.name, err)
	}
	if text := err.Error(); len(text) > 500 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%s: the error is not fit to be shown: %q", forged.name, text)
	}
}
