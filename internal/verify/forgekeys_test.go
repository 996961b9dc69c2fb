package verify_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

func simpleByKey(t *testing.T) *scene {
	t.Helper()
	key, other := verifytest.NewKey(t), verifytest.NewKey(t)
	artifact := verifytest.Artifact(repository, manifest)
	digest := artifact.Descriptor.Digest
	s := &scene{
		name: "simple signature by key", verifier: withKeys(t, key), artifact: artifact,
		signature: key.SimpleSigning(t, repository, digest),
	}
	s.forge("other key", other.SimpleSigning(t, repository, digest))
	s.under("key removed", withKeys(t, other))
	s.about("other repository", verifytest.Artifact("registry.example:5000/team/other", manifest))
	s.about("other host", verifytest.Artifact("registry.example/team/app", manifest))
	s.about("host with the repository's first words", verifytest.Artifact("registry.example:5000/team/app/more", manifest))
	s.forge("payload swapped", containing(s.signature, string(verifytest.SimplePayload(repository, digest))+" "))
	s.forge("no signature", annotated(s.signature, verify.AnnotationSignature, ""))
	s.forge("signature not base64", annotated(s.signature, verify.AnnotationSignature, "%%%"))
	s.forge("signature of another payload", annotated(s.signature, verify.AnnotationSignature,
		key.SignPayload(t, []byte("{}")).Annotations[verify.AnnotationSignature]))
	payload := string(s.signature.Content)
	for name, changed := range map[string]string{
		"no repository":         strings.Replace(payload, repository, "", 1),
		"atomic type":           strings.Replace(payload, "cosign container image signature", "atomic container signature", 1),
		"no type":               strings.Replace(payload, `"type"`, `"typo"`, 1),
		"no digest in it":       strings.Replace(payload, `"docker-manifest-digest"`, `"digest"`, 1),
		"digest prefix":         strings.Replace(payload, digest.String(), digest.String()[:40], 1),
		"upper-case digest":     strings.Replace(payload, digest.String(), strings.ToUpper(digest.String()), 1),
		"digest twice":          strings.Replace(payload, `"image":{`, `"image":{"docker-manifest-digest":"sha256:00",`, 1),
		"digest twice by case":  strings.Replace(payload, `"image":{`, `"image":{"Docker-Manifest-Digest":"sha256:00",`, 1),
		"critical twice":        strings.Replace(payload, `{"critical"`, `{"critical":{},"critical"`, 1),
		"trailing document":     payload + "{}",
		"trailing word":         payload + " true",
		"repository as a list":  strings.Replace(payload, `"`+repository+`"`, `["`+repository+`"]`, 1),
		"repository of no host": strings.Replace(payload, repository, "team/app", 1),
		"array":                 "[" + payload + "]",
	} {
		s.forge(name, key.SignPayload(t, []byte(changed)))
	}
	return s
}

func bundleByKey(t *testing.T) *scene {
	t.Helper()
	key, other := verifytest.NewKey(t), verifytest.NewKey(t)
	artifact := verifytest.Artifact(repository, manifest)
	digest := artifact.Descriptor.Digest
	s := &scene{name: "bundle by key", verifier: withKeys(t, key), artifact: artifact, signature: key.Bundle(t, artifact.Descriptor)}
	s.forge("other key", other.Bundle(t, artifact.Descriptor))
	s.under("key removed", withKeys(t, other))
	s.forge("keyless", verifytest.NewSigstore(t).Bundle(t, artifact, by()))
	for _, predicate := range []string{
		"https://slsa.dev/provenance/v1", "https://spdx.dev/Document", "https://cyclonedx.org/bom",
		"https://cosign.sigstore.dev/attestation/v1", "https://sigstore.dev/cosign/sign/v2", "",
	} {
		s.forge("predicate "+predicate, key.SignStatement(t, verifytest.Statement(t, predicate, digest)))
	}
	stated := string(verifytest.Statement(t, verifytest.PredicateSign, digest))
	for name, changed := range map[string]string{
		"other subject":        strings.ReplaceAll(stated, digest.Encoded(), strings.Repeat("0", 64)),
		"subject of sha512":    strings.Replace(stated, `"sha256"`, `"sha512"`, 1),
		"subject twice":        strings.Replace(stated, `"subject":`, `"subject":[],"subject":`, 1),
		"no subject":           strings.Replace(stated, `"subject"`, `"object"`, 1),
		"other statement type": strings.Replace(stated, "Statement/v1", "Statement/v9", 1),
		"no statement type":    strings.Replace(stated, `"_type"`, `"type"`, 1),
		"predicate twice":      strings.Replace(stated, `"predicateType":`, `"predicateType":"https://slsa.dev/provenance/v1","predicateType":`, 1),
		"not JSON":             "signed words",
		"trailing":             stated + "{}",
	} {
		s.forge(name, key.SignStatement(t, []byte(changed)))
	}
	s.tamper(t, "publicKey.hint")
	s.edit(t, "two signatures", func(document map[string]any) {
		envelope := at(document, "dsseEnvelope")
		envelope["signatures"] = append(list(envelope["signatures"]), list(envelope["signatures"])...)
	})
	s.edit(t, "no signatures", func(document map[string]any) { at(document, "dsseEnvelope")["signatures"] = []any{} })
	s.edit(t, "no key", func(document map[string]any) { delete(at(document, "verificationMaterial"), "publicKey") })
	s.edit(t, "malformed log entry", func(document map[string]any) {
		at(document, "verificationMaterial")["tlogEntries"] = []any{map[string]any{"logIndex": "1"}}
	})
	s.edit(t, "unknown field", func(document map[string]any) { document["approved"] = true })
	return s
}

func messageByKey(t *testing.T) *scene {
	t.Helper()
	key, other := verifytest.NewKey(t), verifytest.NewKey(t)
	artifact := verifytest.Artifact(repository, manifest)
	s := &scene{name: "message by key", verifier: withKeys(t, key), artifact: artifact, signature: key.MessageBundle(t, []byte(manifest))}
	s.forge("other key", other.MessageBundle(t, []byte(manifest)))
	s.forge("other message", key.MessageBundle(t, []byte(manifest+" ")))
	s.forge("empty message", key.EmptyMessage(t, artifact.Descriptor.Digest))
	s.tamper(t, "publicKey.hint", "messageDigest.algorithm")
	claimed := decode(t, s.signature)
	s.edit(t, "digest of another message", func(document map[string]any) {
		another := decode(t, key.MessageBundle(t, []byte("another")))
		document["messageSignature"] = another["messageSignature"]
		at(document, "messageSignature")["messageDigest"] = at(claimed, "messageSignature")["messageDigest"]
	})
	return s
}

// emptyMessageByKey has a key that hashes by itself: given a digest alone, there is nothing that it could have
// signed, and a signature over no bytes must not count for every digest.
func emptyMessageByKey(t *testing.T) *scene {
	t.Helper()
	key := verifytest.NewKeyOf(t, verifytest.Ed25519)
	artifact := verifytest.Artifact(repository, manifest)
	s := &scene{name: "bundle by Ed25519 key", verifier: withKeys(t, key), artifact: artifact, signature: key.Bundle(t, artifact.Descriptor)}
	s.forge("empty message", key.EmptyMessage(t, artifact.Descriptor.Digest))
	return s
}

// edit is the forgery of a JSON signature changed in place.
func (s *scene) edit(t *testing.T, name string, change func(map[string]any)) {
	t.Helper()
	document := decode(t, s.signature)
	change(document)
	encoded, err := json.Marshal(document)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s.forge(name, containing(s.signature, string(encoded)))
}

// tamper changes each string of a JSON signature in turn, except those that prove nothing.
func (s *scene) tamper(t *testing.T, except ...string) {
	t.Helper()
	var paths [][]any
	walk(decode(t, s.signature), nil, func(path []any) { paths = append(paths, path) })
	if len(paths) < 4 {
		t.Fatalf("only %d strings to tamper with", len(paths))
	}
	for _, path := range paths {
		name := named(path)
		if hasSuffix(name, except) {
			continue
		}
		for _, share := range []int{0, 30, 60} {
			s.edit(t, "tampered "+name, func(document map[string]any) { tamperAt(document, path, share) })
		}
	}
}

func decode(t *testing.T, signature verify.Signature) map[string]any {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(signature.Content, &document); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return document
}

func at(document map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := document[name].(map[string]any)
		if !ok {
			panic("no object at " + name)
		}
		document = next
	}
	return document
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// walk visits every string below the value.
func walk(value any, path []any, visit func([]any)) {
	step := func(next any) []any { return append(append([]any{}, path...), next) }
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			walk(below, step(name), visit)
		}
	case []any:
		for i, below := range value {
			walk(below, step(i), visit)
		}
	case string:
		visit(path)
	}
}

func named(path []any) string {
	var name strings.Builder
	for _, step := range path {
		if word, ok := step.(string); ok {
			name.WriteString("." + word)
		}
	}
	return name.String()
}

func hasSuffix(name string, suffixes []string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(name, "."+suffix) {
			return true
		}
	}
	return false
}

// tamperAt replaces one letter of the string at the path, share per cent into it.
func tamperAt(value any, path []any, share int) any {
	if len(path) == 0 {
		text, _ := value.(string)
		letters := []byte(text)
		i := len(letters) * share / 100
		letters[i] = otherLetter(letters[i])
		return string(letters)
	}
	switch within := value.(type) {
	case map[string]any:
		name, _ := path[0].(string)
		within[name] = tamperAt(within[name], path[1:], share)
	case []any:
		i, _ := path[0].(int)
		within[i] = tamperAt(within[i], path[1:], share)
	}
	return value
}

// otherLetter is another one that is just as good in numbers, hexadecimal and base64.
func otherLetter(letter byte) byte {
	switch {
	case letter == 'B', letter == '1':
		return letter + 1
	case letter >= '0' && letter <= '9':
		return '1'
	}
	return 'B'
}
