package e2e

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

const modulePassword = "canary-of-the-modules-7d02"

// under puts files into a folder, beside one that is not to be installed.
func under(folder string, files map[string]string) upstream.Files {
	all := map[string]string{"stray.yaml": settings("stray", "0.0.0")}
	for name, content := range files {
		all[folder+"/"+name] = content
	}
	return upstream.Text(all)
}

func fromGit(git modulesv1.GitArtifact, path string) modulesv1.TemplateArtifact {
	return modulesv1.TemplateArtifact{Git: &git, Path: path}
}

// TestModuleReleasesInAPrivateRepository: two releases are commits of one repository, and one of them is a tag that has
// moved since.
func TestModuleReleasesInAPrivateRepository(t *testing.T) {
	t.Parallel()
	front := newFront(t)
	s := newModuleScene(t, front.flag)
	repository := s.upstream.Repository("foo")
	one := repository.Commit("main", "1.0.0", under("deploy", fooFiles("1.0.0")))
	two := repository.Commit("main", "2.0.0", under("deploy", fooFiles("2.0.0")))
	repository.Tag("v1", two, true)
	server := s.upstream.HTTP(upstream.HTTPOptions{Access: upstream.Access{Username: "ada", Password: modulePassword}})
	s.start()
	front.manager.Store(s.manager)
	catalogue := s.inside(s.system)
	catalogue.secret("login", map[string]string{"username": "ada", "password": "canary-of-nobody-11aa"})
	login := &modulesv1.LocalReference{Name: "login"}
	first := s.templateIn(s.system, "foo-1", "1.0.0", "", fromGit(modulesv1.GitArtifact{URL: server.URL("foo"), Commit: one, Tag: "v1", SecretRef: login}, "deploy"))
	second := s.templateIn(s.system, "foo-2", "2.0.0", "", fromGit(modulesv1.GitArtifact{URL: server.URL("foo"), Commit: two, SecretRef: login}, "./deploy/"))
	s.templateIn(s.system, "foo-3", "3.0.0", "", fromGit(modulesv1.GitArtifact{URL: server.URL("foo"), Commit: strings.Repeat("3", 40)}, ""))

	// What nobody wants is not fetched, and is as good as ready.
	s.shows("foo-3", meta.ReadyCondition, metav1.ConditionTrue, modulesv1.SucceededReason, "is fetched when something needs it")
	if found, err := s.sources(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("sources for releases that nobody wants: %q, %v", found, err)
	}

	// The Secret is wrong first. That is told where it is mended, and to those who wait for it.
	s.install("app", byVersion("1.0.0"))
	s.shows("foo-1", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactFailedReason, "authentication")
	s.failing("app", modulesv1.UpToDateCondition, modulesv1.ReleaseNotReadyReason, "authentication")
	catalogue.told("foo-1", corev1.EventTypeWarning, modulesv1.ArtifactFailedReason, "authentication")
	catalogue.secret("login", map[string]string{"username": "ada", "password": modulePassword})
	obj := s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	s.says("settings-app", "1.0.0")
	got := []string{obj.Status.Current.Content, obj.Status.Current.Path, obj.Status.Current.Revision, obj.Status.Current.Source.Kind}
	if diff := cmp.Diff([]string{"sha1:" + one + "//deploy", "deploy", "sha1:" + one, sourcev1.GitRepositoryKind}, got); diff != "" {
		t.Errorf("what is installed (-want +got):\n%s", diff)
	}
	s.hasSources("GitRepository of foo-1")
	source := catalogue.scene.get(obj.Status.Current.Source.Name)
	want := sourcev1.GitRepositorySpec{
		URL: server.URL("foo"), Reference: &sourcev1.GitRepositoryRef{Commit: one}, SecretRef: &meta.LocalObjectReference{Name: "login"},
	}
	if got := (sourcev1.GitRepositorySpec{URL: source.Spec.URL, Reference: source.Spec.Reference, SecretRef: source.Spec.SecretRef}); !cmp.Equal(want, got) {
		t.Errorf("the source (-want +got):\n%s", cmp.Diff(want, got))
	}
	// Of a source that was made for a template, everything is put back.
	catalogue.scene.edit(source.Name, func(obj *sourcev1.GitRepository) { obj.Spec.Reference = &sourcev1.GitRepositoryRef{Branch: "main"} })
	catalogue.scene.until(source.Name, "pinned again", func(obj *sourcev1.GitRepository) bool {
		return obj.Spec.Reference.Commit == one && obj.Spec.Reference.Branch == ""
	})

	s.change("app", byVersion("2.0.0"))
	s.ready("app", "2.0.0")
	s.exact("app", fooMembers("app", "2.0.0")...)
	s.hasSources("GitRepository of foo-1", "GitRepository of foo-2")
	s.staysWhileItIsNeeded(front, first, second)
	s.tellsNoSecrets()
}

// staysWhileItIsNeeded deletes the templates of what the installation runs and ran before, which go at once.
func (s moduleScene) staysWhileItIsNeeded(front *front, before, now *modulesv1.ModuleTemplate) {
	s.t.Helper()
	for _, template := range []*modulesv1.ModuleTemplate{before, now} {
		s.shows(template.Name, modulesv1.InUseCondition, metav1.ConditionTrue, modulesv1.InstalledReason, "")
		s.drops(template)
		s.vanishes(template)
	}
	s.install("late", byVersion("2.0.0"))
	s.failing("late", modulesv1.ResolvedCondition, modulesv1.VersionNotFoundReason, "does not offer version 2.0.0")
	s.remove("late")
	s.gone("late")
	s.breaks("app", "2.0.0")

	// A process that has nothing in memory, and nothing unpacked, needs the artifact itself.
	s.stop()
	s.drop("settings-app")
	s.start()
	front.manager.Store(s.manager)
	s.becomes("settings-app", "2.0.0")
	s.until("app", "whole again, and told that nothing offers it", func(obj *modulesv1.ModuleInstallation) bool {
		return isInstalled(obj, "2.0.0") && obj.Status.Pending != nil && obj.Status.Pending.Reason == modulesv1.VersionNotFoundReason
	})
	s.exact("app", fooMembers("app", "2.0.0")...)
	s.hasSources("GitRepository of foo-1", "GitRepository of foo-2")

	s.remove("app")
	s.gone("app")
}
