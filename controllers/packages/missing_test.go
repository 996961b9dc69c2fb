package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// TestWhatIsMissingIsSaid of a Repository, and it goes on once it is there.
func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	signing := func(secret string) func(*sourcev1.GitRepository, *packagesv1.Repository) {
		return func(_ *sourcev1.GitRepository, r *packagesv1.Repository) {
			r.Spec.Commit = &packagesv1.CommitSpec{SigningKeySecretRef: &packagesv1.LocalReference{Name: secret}}
		}
	}
	p.create(
		&corev1.Secret{ObjectMeta: p.meta("empty"), Data: map[string][]byte{"other": []byte("x")}},
		&corev1.Secret{ObjectMeta: p.meta("garbage"), Data: map[string][]byte{"identity": []byte("x")}},
	)
	for name, test := range map[string]struct {
		change        func(*sourcev1.GitRepository, *packagesv1.Repository)
		reason, words string
	}{
		"source": {func(_ *sourcev1.GitRepository, r *packagesv1.Repository) { r.Spec.GitRepositoryRef.Name = "none" }, packagesv1.GitRepositoryNotFoundReason, "none"},
		"secret": {func(s *sourcev1.GitRepository, _ *packagesv1.Repository) {
			s.Spec.SecretRef = &meta.LocalObjectReference{Name: "none"}
		}, "", "none"},
		"push": {func(_ *sourcev1.GitRepository, r *packagesv1.Repository) {
			r.Spec.PushSecretRef = &packagesv1.LocalReference{Name: "none"}
		}, "", "spec.pushSecretRef"},
		"key":     {signing("none"), packagesv1.SecretNotFoundReason, "spec.commit.signingKeySecretRef"},
		"empty":   {signing("empty"), packagesv1.SecretNotFoundReason, "git.asc"},
		"garbage": {signing("garbage"), packagesv1.SigningKeyInvalidReason, "garbage"},
	} {
		p.stock(name, test.change)
		repository := p.packages(name)
		until(p, repository, name+" is told", func(r *packagesv1.Repository) (bool, string) {
			return conditions.IsFalse(r, "Ready") && (test.reason == "" || conditions.GetReason(r, "Ready") == test.reason) &&
				strings.Contains(conditions.GetMessage(r, "Ready"), test.words), said(r)
		})
	}
	lacking := p.variantNamed("lacking")
	fails(p, lacking, packagesv1.RepositoryNotFoundReason, "blueprints")
	blueprints := p.repository("blueprints")
	fails(p, lacking, packagesv1.RepositoryNotFoundReason, "cluster")
	cluster := p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	fails(p, lacking, packagesv1.UpstreamNotFoundReason, "app")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	p.drafted(lacking, cluster, func(upstream.Files) bool { return true })
	p.create(&corev1.Secret{ObjectMeta: p.meta("none"), StringData: map[string]string{"username": "a", "password": "b"}})
	repository := p.packages("push")
	until(p, repository, "the Secret is taken", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
}
