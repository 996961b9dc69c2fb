package verify_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// keylessForgeries adds what must be refused of a signature made by sign, whatever its format.
func (s *scene) keylessForgeries(t *testing.T, sigstore *verifytest.Sigstore, sign func(*verifytest.Sigstore, verifytest.Signing) verify.Signature) {
	t.Helper()
	foreign := verifytest.NewSigstore(t)
	s.forge("other authority", sign(foreign, by()))
	s.under("other trusted root", keyless(t, foreign.TrustedRoot(t)))
	for name, change := range map[string]func(*verifytest.Signing){
		"other identity":         func(by *verifytest.Signing) { by.Identity = "https://forge.example/mallory/app/" },
		"identity after another": func(by *verifytest.Signing) { by.Identity = "https://evil.example/?https://forge.example/team/app/" },
		"mail for an address":    func(by *verifytest.Signing) { by.Identity = "release@forge.example" },
		"other issuer":           func(by *verifytest.Signing) { by.Issuer = "https://tokens.evil.example" },
		"issuer with a tail":     func(by *verifytest.Signing) { by.Issuer = issuer + ".evil.example" },
		"logged after expiry":    func(by *verifytest.Signing) { by.LoggedAt = verifytest.Noon().Add(time.Hour) },
		"logged before issue":    func(by *verifytest.Signing) { by.LoggedAt = verifytest.Noon().Add(-time.Hour) },
		"issued before the root": func(by *verifytest.Signing) { by.IssuedAt = verifytest.Noon().AddDate(-3, 0, 0) },
		"issued after the root":  func(by *verifytest.Signing) { by.IssuedAt = verifytest.Noon().AddDate(3, 0, 0) },
		"in no log":              func(by *verifytest.Signing) { by.NoLog = true },
		"in no log, but stamped": func(by *verifytest.Signing) { by.NoLog, by.Timestamp = true, true },
		"in no certificate log":  func(by *verifytest.Signing) { by.NoCertificateLog = true },
		"stamped after expiry": func(by *verifytest.Signing) {
			by.Timestamp, by.NoPromise, by.LoggedAt = true, true, verifytest.Noon().Add(time.Hour)
		},
		"Ed25519 over the digest": func(by *verifytest.Signing) { by.Kind = verifytest.Ed25519; by.Issuer = "https://evil.example" },
	} {
		changed := by()
		change(&changed)
		s.forge(name, sign(sigstore, changed))
	}
	others := []verify.Identity{{Issuer: "^https://other", Subject: ".*"}, {Issuer: ".*", Subject: "^https://other"}}
	strict, err := verify.NewCosignKeyless(verify.KeylessOptions{Identities: others, TrustedRoot: sigstore.TrustedRoot(t)})
	if err != nil {
		t.Fatalf("NewCosignKeyless: %v", err)
	}
	s.under("half of each identity", strict)
	s.under("under a key", withKeys(t, verifytest.NewKey(t)))
}

func simpleKeyless(t *testing.T, sigstore *verifytest.Sigstore) *scene {
	t.Helper()
	artifact := verifytest.Artifact(repository, manifest)
	sign := func(sigstore *verifytest.Sigstore, by verifytest.Signing) verify.Signature {
		return sigstore.SimpleSigning(t, artifact, by)
	}
	s := &scene{name: "simple signature keyless", verifier: keyless(t, sigstore.TrustedRoot(t)), artifact: artifact, signature: sign(sigstore, by())}
	s.keylessForgeries(t, sigstore, sign)
	s.about("other repository", verifytest.Artifact("registry.example:5000/team/other", manifest))
	s.forge("payload swapped", containing(s.signature, string(s.signature.Content)+" "))
	s.forge("claims another digest", sigstore.SignPayload(t, verifytest.SimplePayload(repository, verifytest.Artifact(repository, "x").Descriptor.Digest), by()))
	s.forge("claims another type", sigstore.SignPayload(t, []byte(strings.Replace(string(s.signature.Content), "cosign", "other", 1)), by()))

	// The same signer signed something else as well: its entries are real, and of another signature.
	foreign := sigstore.SignPayload(t, []byte(`{"other":"payload"}`), by())
	again := sign(sigstore, by())
	foreignLog := verifytest.NewSigstore(t).SimpleSigning(t, artifact, by())
	for _, annotation := range []string{verify.AnnotationSignature, verify.AnnotationCertificate, verify.AnnotationBundle} {
		s.forge("foreign "+annotation, annotated(s.signature, annotation, foreign.Annotations[annotation]))
		s.forge("of another time: "+annotation, annotated(s.signature, annotation, again.Annotations[annotation]))
		s.forge("foreign log's "+annotation, annotated(s.signature, annotation, foreignLog.Annotations[annotation]))
		s.forge("no "+annotation, annotated(s.signature, annotation, ""))
		s.forge("malformed "+annotation, annotated(s.signature, annotation, "malformed"))
	}
	s.forge("two certificates", annotated(s.signature, verify.AnnotationCertificate,
		s.signature.Annotations[verify.AnnotationCertificate]+again.Annotations[verify.AnnotationCertificate]))
	s.forge("malformed chain", annotated(s.signature, verify.AnnotationChain, "malformed"))
	s.forge("endless chain", annotated(s.signature, verify.AnnotationChain, strings.Repeat(s.signature.Annotations[verify.AnnotationChain], 40)))
	s.forge("malformed timestamp", annotated(s.signature, verify.AnnotationTimestamp, "{}"))
	entry := s.signature.Annotations[verify.AnnotationBundle]
	for name, changed := range map[string]string{
		"other time":      strings.Replace(entry, `"integratedTime":17`, `"integratedTime":16`, 1),
		"other index":     strings.Replace(entry, `"logIndex":1`, `"logIndex":2`, 1),
		"negative index":  strings.Replace(entry, `"logIndex":1`, `"logIndex":-1`, 1),
		"no promise":      strings.Replace(entry, `"SignedEntryTimestamp"`, `"Promise"`, 1),
		"payload twice":   strings.Replace(entry, `{"Payload"`, `{"Payload":{},"Payload"`, 1),
		"body not base64": strings.Replace(entry, `"body":"`, `"body":"%`, 1),
		"log not hex":     strings.Replace(entry, `"logID":"`, `"logID":"x`, 1),
		"trailing":        entry + "{}",
	} {
		if changed == entry {
			t.Fatalf("%s: nothing changed in %s", name, entry)
		}
		s.forge("log entry: "+name, annotated(s.signature, verify.AnnotationBundle, changed))
	}
	return s
}

func bundleKeyless(t *testing.T, sigstore *verifytest.Sigstore) *scene {
	t.Helper()
	artifact := verifytest.Artifact(repository, manifest)
	digest := artifact.Descriptor.Digest
	sign := func(sigstore *verifytest.Sigstore, by verifytest.Signing) verify.Signature {
		return sigstore.Bundle(t, artifact, by)
	}
	s := &scene{name: "bundle keyless", verifier: keyless(t, sigstore.TrustedRoot(t)), artifact: artifact, signature: sign(sigstore, by())}
	s.keylessForgeries(t, sigstore, sign)
	s.bundleForgeries(t, sign(sigstore, by()), sigstore.SignStatement(t, verifytest.Statement(t, verifytest.PredicateSign, "sha256:00"), by()))
	for _, predicate := range []string{"https://slsa.dev/provenance/v1", "https://spdx.dev/Document", ""} {
		s.forge("predicate "+predicate, sigstore.SignStatement(t, verifytest.Statement(t, predicate, digest), by()))
	}
	version2 := by()
	version2.LogVersion2 = true
	s.forge("log of version 2 without a timestamp", sign(sigstore, version2))
	s.forge("other subject", sigstore.Bundle(t, verifytest.Artifact(repository, "other"), by()))
	s.forge("by a key", verifytest.NewKey(t).Bundle(t, artifact.Descriptor))
	return s
}

// bundleOfVersion2 is a signature in the second version of the log: its time is the timestamp authority's.
func bundleOfVersion2(t *testing.T, sigstore *verifytest.Sigstore) *scene {
	t.Helper()
	artifact := verifytest.Artifact(repository, manifest)
	sign := func(about string) verify.Signature {
		version2 := by()
		version2.Timestamp, version2.LogVersion2 = true, true
		return sigstore.Bundle(t, verifytest.Artifact(repository, about), version2)
	}
	s := &scene{name: "bundle in log of version 2", verifier: keyless(t, sigstore.TrustedRoot(t)), artifact: artifact, signature: sign(manifest)}
	// The log's second version gives no index, time or promise. What counts is the entry that the library makes of the
	// bundle itself, and the tree that the log signed in its checkpoint; that the bundle repeats both is convenience.
	s.tamper(t, "treeSize", "rootHash", "canonicalizedBody")
	for name, other := range map[string]verify.Signature{"of another time": sign(manifest), "of another artifact": sign("other")} {
		material := at(decode(t, other), "verificationMaterial")
		for _, part := range []string{"tlogEntries", "timestampVerificationData", "certificate"} {
			s.edit(t, part+" "+name, func(edited map[string]any) { at(edited, "verificationMaterial")[part] = material[part] })
		}
	}
	s.under("trusts another sigstore", keyless(t, verifytest.NewSigstore(t).TrustedRoot(t)))
	return s
}

func messageKeyless(t *testing.T, sigstore *verifytest.Sigstore) *scene {
	t.Helper()
	artifact := verifytest.Artifact(repository, manifest)
	sign := func(sigstore *verifytest.Sigstore, by verifytest.Signing) verify.Signature {
		if by.Kind == verifytest.Ed25519 {
			by.NoLog = true // The log records digests only.
		}
		return sigstore.MessageBundle(t, []byte(manifest), by)
	}
	s := &scene{name: "message keyless", verifier: keyless(t, sigstore.TrustedRoot(t)), artifact: artifact, signature: sign(sigstore, by())}
	s.keylessForgeries(t, sigstore, sign)
	s.bundleForgeries(t, sign(sigstore, by()), sigstore.MessageBundle(t, []byte("other"), by()), "messageDigest.algorithm")
	s.forge("other message", sigstore.MessageBundle(t, []byte("other"), by()))
	return s
}

// bundleForgeries mixes the scene's bundle with another one of the same artifact and with one of something else.
func (s *scene) bundleForgeries(t *testing.T, again, foreign verify.Signature, unproved ...string) {
	t.Helper()
	s.tamper(t, unproved...)
	for name, other := range map[string]verify.Signature{"of another time": again, "of another artifact": foreign} {
		document := decode(t, other)
		s.edit(t, "log entries "+name, func(edited map[string]any) {
			at(edited, "verificationMaterial")["tlogEntries"] = at(document, "verificationMaterial")["tlogEntries"]
		})
		s.edit(t, "certificate "+name, func(edited map[string]any) {
			at(edited, "verificationMaterial")["certificate"] = at(document, "verificationMaterial")["certificate"]
		})
		s.edit(t, "material "+name, func(edited map[string]any) {
			edited["verificationMaterial"] = document["verificationMaterial"]
		})
	}
	s.edit(t, "log entries removed", func(edited map[string]any) { delete(at(edited, "verificationMaterial"), "tlogEntries") })
	s.edit(t, "log entry twice", func(edited map[string]any) {
		material := at(edited, "verificationMaterial")
		material["tlogEntries"] = append(list(material["tlogEntries"]), list(material["tlogEntries"])...)
	})
	s.edit(t, "hundred log entries", func(edited map[string]any) {
		material := at(edited, "verificationMaterial")
		entry := firstEntry(edited)
		entries := []any{}
		for range 100 {
			entries = append(entries, entry)
		}
		material["tlogEntries"] = entries
	})
	s.edit(t, "a foreign log entry beside its own", func(edited map[string]any) {
		material := at(edited, "verificationMaterial")
		theirs := list(at(decode(t, foreign), "verificationMaterial")["tlogEntries"])
		material["tlogEntries"] = append(theirs, list(material["tlogEntries"])...)
	})
	s.edit(t, "promise removed", func(edited map[string]any) {
		delete(firstEntry(edited), "inclusionPromise")
	})
	s.edit(t, "proof removed", func(edited map[string]any) {
		delete(firstEntry(edited), "inclusionProof")
	})
	s.edit(t, "no certificate", func(edited map[string]any) { delete(at(edited, "verificationMaterial"), "certificate") })
}

func firstEntry(document map[string]any) map[string]any {
	entries := list(at(document, "verificationMaterial")["tlogEntries"])
	entry, ok := entries[0].(map[string]any)
	if !ok {
		panic("the first log entry is no object")
	}
	return entry
}
