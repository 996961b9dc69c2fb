package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// servedIn is a file with what is served, after the edit.
func (s *scene) servedIn(artifact *meta.Artifact, edit func([]byte)) string {
	s.t.Helper()
	content := s.download(artifact)
	if edit != nil {
		edit(content)
	}
	place := filepath.Join(s.t.TempDir(), "served.tar.gz")
	if err := os.WriteFile(place, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return place
}

// TestVerifyRebuilds: what is served is what upstream has, of a commit on a branch that has gone on and behind a login; and one
// flipped bit is found.
func TestVerifyRebuilds(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", upstream.Text(map[string]string{"a.yaml": "replicas: 1\n", "sub/b.yaml": "x: y\n"}))
	access := upstream.Access{Username: "git", Password: "canary-of-upstream"}
	s.secret("login", map[string]string{"username": access.Username, "password": access.Password})
	s.make(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}, Spec: sourcev1.GitRepositorySpec{
		URL: s.upstream.HTTP(upstream.HTTPOptions{Access: access}).URL("app"), Interval: metav1.Duration{Duration: time.Hour},
		Reference: &sourcev1.GitRepositoryRef{Branch: "main"}, SecretRef: &meta.LocalObjectReference{Name: "login"},
	}})
	artifact := s.ready("app", mainAt(first)).Status.Artifact
	repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	verified := func(code int, place string) string {
		t.Helper()
		return s.sluice(code, "verify", "gitrepo/app", "--egress-allow-loopback", "--artifact", place)
	}
	s.saying(verified(0, s.servedIn(artifact, nil)), "✔   Served     as status says\n", "✔   Upstream   rebuilt, and the same\n")
	s.saying(verified(1, s.servedIn(artifact, func(content []byte) { content[len(content)/2] ^= 1 })),
		"✗   Served", "and status says "+artifact.Digest, "✔   Upstream   rebuilt, and the same", "✗   Files      the first in which what is served differs is ")
	s.saying(s.sluice(2, "verify", "gitrepo/app", "--artifact", s.servedIn(artifact, nil)), "?   Upstream", "loopback")
	if told := verified(0, s.servedIn(artifact, nil)) + s.sluice(0, "verify", "gitrepo/app", "--egress-allow-loopback", "--artifact", s.servedIn(artifact, nil), "-o", "json", "-v=9"); strings.Contains(told, access.Password) {
		t.Errorf("the password is told: %s", told)
	}
	s.saying(s.sluice(3, "verify", "mi/app"), "this is not for moduleinstallations")

	r := registry.ForTest(t, registry.Options{})
	r.Repository("app").PushFlux("1.0.0", map[string]string{"a.yaml": "a: b\n"}, nil)
	s.make(&sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "image"}, Spec: sourcev1.OCIRepositorySpec{
		URL: r.URL("app"), Insecure: true, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.OCIRepositoryRef{Tag: "1.0.0"},
	}})
	s.sluice(0, "wait", "ocirepo/image", "--timeout", "4m")
	image := &sourcev1.OCIRepository{}
	if err := env.Client.Get(t.Context(), s.key("image"), image); err != nil {
		t.Fatal(err)
	}
	r.Repository("app").PushFlux("1.0.0", map[string]string{"a.yaml": "a: c\n"}, nil)
	s.saying(s.sluice(0, "verify", "ocirepo/image", "--egress-allow-loopback", "--artifact", s.servedIn(image.Status.Artifact, nil)), "✔   Upstream   rebuilt, and the same\n")
}

// TestVerifyProvesSignatures: by what the spec trusts now, whatever it did when the artifact was stored.
func TestVerifyProvesSignatures(t *testing.T) {
	t.Parallel()
	s, r := newOCIScene(t), newSigned(t)
	key := verifytest.NewKey(t)
	s.secret("key", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	s.secret("other", map[string]string{"cosign.pub": string(verifytest.NewKey(t).PublicPEM(t))})
	manifest := r.repository.PushFlux("latest", module(1), nil)
	r.attach(manifest, bundleType, key.Bundle(t, manifest))
	s.create("image", r.URL("team/app"), ociVerify("cosign", "key"))
	served := s.servedIn(s.proven("image", at("latest", manifest)).Status.Artifact, nil)
	s.saying(s.sluice(0, "verify", "ocirepo/image", "--egress-allow-loopback", "--artifact", served), "✔   Signature   verified signature of", "✔   Upstream    rebuilt, and the same\n")
	image := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "image"}}
	s.amend(image, func() { image.Spec.Verify.SecretRef.Name = "other" })
	s.saying(s.sluice(1, "verify", "ocirepo/image", "--egress-allow-loopback", "--artifact", served), "✗   Signature", "none of 1 signatures is by a trusted signer")
}
