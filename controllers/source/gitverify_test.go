package source_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream"
)

// trust makes the Secret hold the keys of those alone.
func (p *plane) trust(signers ...*verifytest.GitSigner) {
	p.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "signers"}, Data: map[string][]byte{}}
	for i, signer := range signers {
		secret.Data[string(rune('a'+i))+"-"+signer.Entry] = signer.Public
	}
	if err := env.Client.Update(p.t.Context(), secret); err != nil {
		err = env.Client.Create(p.t.Context(), secret)
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// signed replaces the tip of a branch by the same commit with a signature.
func (p *plane) signed(edited *upstream.Edited, branch string, by *verifytest.GitSigner) string {
	p.t.Helper()
	id := edited.Object("commit", by.Commit(p.t, []byte(edited.Raw("cat-file", "commit", branch))))
	edited.SetRef("refs/heads/"+branch, id)
	return id
}

// TestOnlyWhatIsSignedBecomesAnArtifact: and what was published stays, whoever is trusted later.
func TestOnlyWhatIsSignedBecomesAnArtifact(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	ada, bob := verifytest.NewPGPSigner(t), verifytest.NewSSHSigner(t)
	p.trust(ada)
	app := p.upstream.Repository("app")
	app.Raw("config", "uploadpack.allowFilter", "true")
	app.Commit("main", "one", upstream.Text(map[string]string{"a": "1"}))
	first := p.signed(app, "main", ada)
	p.create("app", "app", func(spec *sourcev1.GitRepositorySpec) {
		spec.Verification = &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitHEAD, SecretRef: meta.LocalObjectReference{Name: "signers"}}
	})
	obj := p.succeed("app")
	want := "True Succeeded: verified signature of\n\t- commit '" + first + "' with key '" + ada.Name + "'"
	if got := summary(obj)["SourceVerified"]; got != want || obj.Status.SourceVerificationMode == nil || *obj.Status.SourceVerificationMode != sourcev1.ModeGitHEAD {
		t.Errorf("got %q, want %q; mode %v", got, want, obj.Status.SourceVerificationMode)
	}

	// Other keys, by which it is proven too: nothing is downloaded.
	p.server.Reset()
	p.trust(ada, bob)
	obj = p.succeed("app")
	if fetches := p.server.Count(upstream.Fetch); fetches != 0 || summary(obj)["SourceVerified"] != want {
		t.Errorf("%d fetches for the same commit, %q", fetches, summary(obj)["SourceVerified"])
	}

	// An unsigned commit, and then nobody who is trusted.
	app.Commit("main", "two", upstream.Text(map[string]string{"a": "2"}))
	refused := func(says string) {
		t.Helper()
		if _, err := p.reconcile("app"); err == nil {
			t.Error("no error")
		}
		obj := p.get("app")
		got := summary(obj)
		if !strings.HasPrefix(got["SourceVerified"], "False InvalidCommitSignature: ") || !strings.Contains(got["SourceVerified"], says) ||
			!strings.HasPrefix(got["Ready"], "False InvalidCommitSignature: ") {
			t.Errorf("conditions %v", got)
		}
		if artifact := obj.Status.Artifact; artifact == nil || !strings.HasSuffix(artifact.Revision, first) || p.served(artifact) != nil {
			t.Errorf("artifact %+v", artifact)
		}
	}
	refused("carries no signature")
	app.SetRef("refs/heads/main", first)
	p.trust(bob)
	refused("signature verification of commit '" + first + "' failed")

	// Nothing is asked for any more.
	p.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Verification = nil })
	obj = p.succeed("app")
	if got, told := summary(obj)["SourceVerified"]; told || obj.Status.SourceVerificationMode != nil {
		t.Errorf("SourceVerified %q, mode %v", got, obj.Status.SourceVerificationMode)
	}
}
