package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// trusts is the Secret with the keys of those alone.
func (p *plane) trusts(signers ...*verifytest.GitSigner) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: p.meta("keys"), Data: map[string][]byte{}}
	for i, signer := range signers {
		secret.Data[string(rune('a'+i))+"-"+signer.Entry] = signer.Public
	}
	return secret
}

// verified makes a Git repository, and its objects, whose commits are to be signed.
func (p *plane) verified(name string, mode sourcev1.GitVerificationMode) *upstream.Edited {
	p.Helper()
	made := p.upstreams.Repository(name + ".git")
	made.AcceptPushes()
	source := p.source(name, p.server)
	source.Spec.Verification = &sourcev1.GitRepositoryVerification{Mode: mode, SecretRef: meta.LocalObjectReference{Name: "keys"}}
	p.create(source, p.packages(name))
	made.Moved = func() { p.look(name) }
	return made
}

// sign makes a commit or tag again, with a signature.
func (p *plane) sign(in *upstream.Edited, kind, id string, by *verifytest.GitSigner) string {
	p.Helper()
	raw := []byte(in.Raw("cat-file", kind, id))
	if kind == "tag" {
		return in.Object(kind, by.Tag(p.T, append(raw, '\n')))
	}
	return in.Object(kind, by.Commit(p.T, raw))
}

// replace gives the Secret other keys, and has the repository read.
func (p *plane) replace(name string, secret *corev1.Secret) {
	p.Helper()
	if err := env.Client.Update(p.Context(), secret); err != nil {
		p.Fatal(err)
	}
	p.look(name)
}

// TestOnlySignedUpstreamCommitsAreRead where the GitRepository demands it: nothing of any other is drafted, and what is published stays.
// Other keys have every commit verified again.
func TestOnlySignedUpstreamCommitsAreRead(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	ada, bob := verifytest.NewPGPSigner(t), verifytest.NewSSHSigner(t)
	p.create(p.trusts(ada))
	blueprints, cluster := p.verified("blueprints", sourcev1.ModeGitHEAD), p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	v := p.variant(always)
	fails(p, v, packagesv1.VerificationFailedReason, "carries no signature")
	if got := refs(cluster); strings.Contains(got, "app/") {
		t.Errorf("something was made of an unsigned commit:\n%s", got)
	}
	first := p.sign(blueprints, "commit", "main", ada)
	blueprints.SetRef("refs/heads/main", first)
	blueprints.SetRef("refs/tags/app/v1", first)
	p.published(v, "v1")

	second := p.sign(blueprints, "commit", blueprints.Commit("main", "newer", plain("2.0.0")), bob)
	blueprints.SetRef("refs/heads/main", second)
	blueprints.SetRef("refs/tags/app/v2", second)
	fails(p, v, packagesv1.VerificationFailedReason, second)
	if v.Status.Published == nil || v.Status.Published.Revision != "v1" || strings.Contains(refs(cluster), "drafts/") {
		t.Errorf("published is %+v, with\n%s", v.Status.Published, refs(cluster))
	}
	p.replace("blueprints", p.trusts(ada, bob))
	p.published(v, "v2")
	p.replace("blueprints", p.trusts(ada))
	fails(p, v, packagesv1.VerificationFailedReason, second)
	p.replace("blueprints", &corev1.Secret{ObjectMeta: p.meta("keys"), StringData: map[string]string{"author.asc": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"}})
	fails(p, p.packages("blueprints"), packagesv1.VerificationKeysInvalidReason, "keys")
	fails(p, v, packagesv1.RepositoryNotReadyReason, "blueprints")
}

// TestSignedTagsAreAskedOfTags: a mode that wants signed tags takes no branch, and no tag without a signature.
func TestSignedTagsAreAskedOfTags(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	ada := verifytest.NewPGPSigner(t)
	p.create(p.trusts(ada))
	blueprints, cluster := p.verified("blueprints", sourcev1.ModeGitTag), p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	v := p.variant()
	fails(p, v, packagesv1.VerificationFailedReason, "app/v1 is not an annotated tag")
	p.ask(v, func() { v.Spec.Upstream.Branch = "main" })
	fails(p, v, packagesv1.VerificationFailedReason, "refs/heads/main is not an annotated tag")
	signed := p.sign(blueprints, "tag", blueprints.Tag("app/v2", strings.TrimSpace(blueprints.Raw("rev-parse", "main")), true), ada)
	blueprints.SetRef("refs/tags/app/v3", signed)
	p.ask(v, func() { v.Spec.Upstream.Branch = "" })
	fails(p, v, packagesv1.VerificationFailedReason, "another name")
	blueprints.SetRef("refs/tags/app/v2", signed)
	blueprints.DeleteRef("refs/tags/app/v3")
	p.drafted(v, cluster, func(f upstream.Files) bool { return len(f) > 0 })
}

// TestNothingIsWrittenWhereSignaturesAreDemanded: a variant that would publish there waits, and so does a draft that somebody pushed.
func TestNothingIsWrittenWhereSignaturesAreDemanded(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.create(p.trusts(verifytest.NewPGPSigner(t)))
	blueprints, cluster := p.repository("blueprints"), p.verified("cluster", sourcev1.ModeGitHEAD)
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cluster.Commit("main", "begin", upstream.Text(readme))
	cluster.Commit("drafts/other/mine", "a draft", plain("1.0.0"))
	cluster.Commit("drafts/app/mine", "a draft", plain("1.0.0"))
	v := p.variant(always)
	fails(p, v, packagesv1.VerificationUnsupportedReason, "GitRepository cluster has spec.verify")
	testenv.Eventually(t, "the draft waits", func(ctx context.Context) (bool, string) {
		var list packagesv1.PackageRevisionList
		err := env.Client.List(ctx, &list, client.InNamespace(p.namespace))
		for i := range list.Items {
			if r := &list.Items[i]; r.Spec.Repository == "cluster" && r.Spec.Package == "app" {
				return conditions.GetReason(r, "Ready") == packagesv1.VerificationUnsupportedReason, said(r)
			}
		}
		return false, fmt.Sprint(err)
	})
}
