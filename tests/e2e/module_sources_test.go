package e2e

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

func fromSource(kind, name, path string) modulesv1.TemplateArtifact {
	return modulesv1.TemplateArtifact{
		SourceRef: &modulesv1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: kind, Name: name}, Path: path,
	}
}

func TestModuleReleasesOfSourcesHaveToBePinned(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	catalogue := ociScene{s.inside(s.system).scene}
	one, other := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("1.0.1", fooFiles("1.0.1"))
	url := s.registry.URL("modules/foo")

	// One that may move is no release, until it is pinned.
	catalogue.create("foo", url, ociTag("1.0.0"))
	s.templateIn(s.system, "foo-oci", "1.0.0", "", fromSource(sourcev1.OCIRepositoryKind, "foo", ""))
	s.stuck("foo-oci", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotPinnedReason, "OCIRepository foo may move")
	s.install("oci", byVersion("1.0.0"))
	s.failing("oci", modulesv1.UpToDateCondition, modulesv1.ReleaseNotReadyReason, "may move")
	catalogue.change("foo", ociDigest(one))
	obj := s.ready("oci", "1.0.0")
	s.exact("oci", fooMembers("oci", "1.0.0")...)
	if got := obj.Status.Current; got.Source.Name != "foo" || got.Content != one.Digest.String() {
		t.Errorf("installed is %s, want the digest of the source foo", asJSON(got))
	}
	s.shows("foo-oci", modulesv1.ArtifactVerifiedCondition, metav1.ConditionTrue, modulesv1.SucceededReason, "")

	// Other content under the same version is not used, and what runs is kept.
	catalogue.change("foo", ociDigest(other))
	s.stuck("foo-oci", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactChangedReason, one.Digest.String())
	s.install("late", byVersion("1.0.0"))
	s.failing("late", modulesv1.UpToDateCondition, modulesv1.ReleaseNotReadyReason, "was installed with")
	s.breaks("oci", "1.0.0")
	s.ready("oci", "1.0.0")
	catalogue.change("foo", ociDigest(one))
	s.ready("late", "1.0.0")

	s.fromGitSources()

	// A source of one's own stays when the template goes.
	s.remove("oci")
	s.remove("late")
	s.gone("oci")
	s.gone("late")
	template := &modulesv1.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "foo-oci"}}
	s.drops(template)
	s.vanishes(template)
	catalogue.get("foo")
	s.hasSources()
}

// fromGitSources has releases come from GitRepositories, which have to name a commit and nothing that moves beside it.
func (s moduleScene) fromGitSources() {
	s.t.Helper()
	catalogue := s.inside(s.system).scene
	repository := s.upstream.Repository("foo")
	commit := repository.Commit("main", "2.0.0", under("deploy", fooFiles("2.0.0")))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.templateIn(s.system, "foo-git", "2.0.0", "", fromSource(sourcev1.GitRepositoryKind, "foo", "deploy"))
	s.shows("foo-git", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotFoundReason, "GitRepository foo does not exist")
	s.install("git", byVersion("2.0.0"))
	s.failing("git", modulesv1.UpToDateCondition, modulesv1.ReleaseNotReadyReason, "does not exist")
	catalogue.create("foo", server.URL("foo"))
	s.stuck("foo-git", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotPinnedReason, "GitRepository foo may move")
	catalogue.edit("foo", func(obj *sourcev1.GitRepository) { obj.Spec.Reference = &sourcev1.GitRepositoryRef{Commit: commit} })
	obj := s.ready("git", "2.0.0")
	s.exact("git", fooMembers("git", "2.0.0")...)
	if diff := cmp.Diff("sha1:"+commit+"//deploy", obj.Status.Current.Content); diff != "" {
		s.t.Errorf("the content (-want +got):\n%s", diff)
	}
	// What is included may move, whatever the repository itself is pinned to.
	catalogue.create("base", server.URL("foo"))
	catalogue.create("mixed", server.URL("foo"), ref(sourcev1.GitRepositoryRef{Commit: commit}), include("base", "deploy", "base"))
	s.templateIn(s.system, "foo-mixed", "2.1.0", "", fromSource(sourcev1.GitRepositoryKind, "mixed", "deploy"))
	s.stuck("foo-mixed", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotPinnedReason, "GitRepository mixed may move")
	s.templateIn(s.system, "foo-bucket", "3.0.0", "", fromSource("Bucket", "foo", ""))
	s.stuck("foo-bucket", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotPinnedReason, "use an OCIRepository, a GitRepository or an ExternalArtifact")
	s.fromGenerated(server.URL("foo"))
}

// fromGenerated has a release come from what a generator makes of a repository: one artifact, by its digest.
func (s moduleScene) fromGenerated(url string) {
	s.t.Helper()
	catalogue := s.inside(s.system).scene
	catalogue.create("moving", url)
	made := &extensionsv1.ArtifactGenerator{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "parts"},
		Spec: extensionsv1.ArtifactGeneratorSpec{
			Sources: []extensionsv1.SourceReference{{Alias: "repo", Kind: sourcev1.GitRepositoryKind, Name: "moving"}},
			OutputArtifacts: []extensionsv1.OutputArtifact{{
				Name: "generated", Copy: []extensionsv1.CopyOperation{{From: "@repo/deploy/**", To: "@artifact/"}},
			}},
		},
	}
	s.make(made)
	generated := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "generated"}}
	await(s.inside(s.system).scene, "parts", made, func(obj *extensionsv1.ArtifactGenerator) bool { return conditions.IsReady(obj) })
	if err := env.Client.Get(s.t.Context(), client.ObjectKeyFromObject(generated), generated); err != nil {
		s.t.Fatal(err)
	}
	artifact := fromSource(sourcev1.ExternalArtifactKind, "generated", "")
	s.templateIn(s.system, "foo-unpinned", "4.0.0", "", artifact)
	s.stuck("foo-unpinned", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotPinnedReason, "spec.artifact.digest")
	artifact.Digest = generated.Status.Artifact.Digest
	s.templateIn(s.system, "foo-generated", "4.0.1", "", artifact)
	s.install("made", byVersion("4.0.1"))
	obj := s.ready("made", "4.0.1")
	s.exact("made", fooMembers("made", "2.0.0")...)
	if got := obj.Status.Current.Content; got != artifact.Digest {
		s.t.Errorf("the content is %s", got)
	}
	s.remove("made")
	s.gone("made")
	s.drops(made)
	s.vanishes(generated)
}

func TestModuleReleasesInAPrivateRegistry(t *testing.T) {
	t.Parallel()
	private := registry.ForTest(t, registry.Options{Auth: registry.Basic, Users: map[string]string{"ada": modulePassword}})
	s := newRunningModules(t)
	s.hide("the registry's password", modulePassword)
	at := func(manifest ocispec.Descriptor) modulesv1.TemplateArtifact {
		return modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
			Repository: private.URL("modules/foo"), Digest: manifest.Digest.String(), Insecure: true, SecretRef: &modulesv1.LocalReference{Name: "login"},
		}, Path: "deploy"}
	}
	one := private.Repository("modules/foo").PushFlux("1.0.0", fooFiles("1.0.0"), nil)
	// A channel leads there, so that it is fetched before anybody installs it.
	s.templateIn(s.system, "foo-regular", "1.0.0", "regular", at(one))
	s.shows("foo-regular", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactFailedReason, "login")
	s.hasSources("OCIRepository of foo-regular")
	ociScene{s.inside(s.system).scene}.dockerConfig("login", private.DockerConfig("ada"))
	s.shows("foo-regular", meta.ReadyCondition, metav1.ConditionTrue, modulesv1.SucceededReason, "can be installed")
	s.inside(s.system).told("foo-regular", corev1.EventTypeNormal, modulesv1.SucceededReason, "can be installed")
	s.install("app", byChannel("regular"))
	obj := s.ready("app", "1.0.0")
	s.exact("app", "ConfigMap/only-1.0.0-app", "ServiceAccount/foo-app", "Role/foo-app")
	if obj.Status.Current.Content != one.Digest.String()+"//deploy" {
		t.Errorf("the content is %s", obj.Status.Current.Content)
	}
	s.tellsNoSecrets()
}
