package e2e

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestModuleStoryOfFiveTemplates: module foo has the releases 1.0.0 and 2.0.0 for everyone, and 2.2.0 for those alone
// who follow experimental; 1.0.0 is in regular and 2.0.0 in fast.
func TestModuleStoryOfFiveTemplates(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	one, two := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("2.0.0", fooFiles("2.0.0"))
	trial := s.publish("2.2.0", fooFiles("2.2.0"))
	s.template("1.0.0", "", one)
	s.template("2.0.0", "", two)
	regular := s.template("1.0.0", "regular", one)
	s.template("2.0.0", "fast", two)
	s.template("2.2.0", "experimental", trial)

	wanted := map[string]struct {
		change   installChange
		version  string
		template string
		by       string
	}{
		"regular":      {byChannel("regular"), "1.0.0", "foo-1.0.0-regular", "channel/regular"},
		"fast":         {byChannel("fast"), "2.0.0", "foo-2.0.0-fast", "channel/fast"},
		"experimental": {byChannel("experimental"), "2.2.0", "foo-2.2.0-experimental", "channel/experimental"},
		"one":          {byVersion("1.0.0"), "1.0.0", "foo-1.0.0", "version/1.0.0"},
		"two":          {byVersion("2.0.0"), "2.0.0", "foo-2.0.0", "version/2.0.0"},
	}
	for name, want := range wanted {
		s.install(name, want.change)
	}
	s.install("trial", byVersion("2.2.0"))
	for name, want := range wanted {
		obj := s.ready(name, want.version)
		got := []string{obj.Status.Current.Template, obj.Status.Current.Namespace, obj.Status.Desired.Version, obj.Status.Resolution.SelectedBy, string(obj.Status.Resolution.Catalog)}
		if diff := cmp.Diff([]string{want.template, s.system, want.version, want.by, "System"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if trace := obj.Status.Resolution.Trace; len(trace) == 0 || trace[len(trace)-1].Kept != 1 {
			t.Errorf("the trace of %s does not end with one release: %s", name, asJSON(trace))
		}
		s.says("settings-"+name, want.version)
		s.told(name, corev1.EventTypeNormal, modulesv1.ReleaseChosenReason, "Release "+want.version+" was chosen by "+want.by)
		s.told(name, corev1.EventTypeNormal, modulesv1.InstallSucceededReason, "foo "+want.version)
		s.exact(name, fooMembers(name, want.version)...)
	}
	trialObj := s.failing("trial", modulesv1.ResolvedCondition, modulesv1.VersionNotFoundReason, "2.2.0")
	if !conditions.IsTrue(trialObj, meta.StalledCondition) || trialObj.Status.Current != nil || trialObj.Status.Inventory != nil {
		t.Errorf("2.2.0 is offered by version already: %s", asJSON(trialObj.Status))
	}

	// The release 2.0.0 reaches regular: its template is edited to the higher version, with the artifact.
	patch(s, regular, func() { regular.Spec.Version, regular.Spec.Artifact = "2.0.0", s.artifact("2.0.0", two) })
	moved := s.ready("regular", "2.0.0")
	if moved.Status.Previous == nil || moved.Status.Previous.Version != "1.0.0" || len(moved.Status.History) != 2 {
		t.Errorf("what ran before is not remembered: %s", asJSON(moved.Status))
	}
	s.says("settings-regular", "2.0.0")
	s.told("regular", corev1.EventTypeNormal, modulesv1.UpgradeSucceededReason, "foo 2.0.0")
	s.told("regular", corev1.EventTypeNormal, modulesv1.PrunedReason, "")
	s.exact("regular", fooMembers("regular", "2.0.0")...)

	// 2.2.0 is for everyone now.
	s.template("2.2.0", "", trial)
	s.ready("trial", "2.2.0")
	s.says("settings-trial", "2.2.0")
	s.exact("trial", fooMembers("trial", "2.2.0")...)
	for name, version := range map[string]string{"one": "1.0.0", "two": "2.0.0", "fast": "2.0.0", "experimental": "2.2.0"} {
		obj := s.ready(name, version)
		if len(obj.Status.History) != 1 {
			t.Errorf("%s was moved by what is none of its business: %s", name, asJSON(obj.Status.History))
		}
	}
}

// fooFiles is a release of foo: settings, an account, a role and one ConfigMap that only this version has.
func fooFiles(version string) map[string]string {
	return map[string]string{
		"settings.yaml": settings("settings", version),
		"deploy/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: foo-${instance}\n---\n" +
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: foo-${instance}\nrules:\n" +
			"- apiGroups: ['']\n  resources: [configmaps]\n  verbs: [get]\n",
		"deploy/only.yaml": settings("only-"+version, version),
	}
}

// fooMembers are the objects of such a release.
func fooMembers(instance, version string) []string {
	return []string{
		"ConfigMap/settings-" + instance, "ConfigMap/only-" + version + "-" + instance,
		"ServiceAccount/foo-" + instance, "Role/foo-" + instance,
	}
}
