package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func named(template string) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module = modulesv1.ModuleRequest{TemplateRef: &modulesv1.LocalReference{Name: template}}
	}
}

func from(catalogue modulesv1.Catalog) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Catalog = catalogue }
}

// TestModuleLocalReleasesShadowTheSystems: the system has foo 1.0.0 and 2.0.0, and the namespace has its own 1.5.0.
func TestModuleLocalReleasesShadowTheSystems(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	one, own := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("1.5.0", fooFiles("1.5.0"))
	two := s.publish("2.0.0", fooFiles("2.0.0"))
	s.template("1.0.0", "", one)
	s.templateIn(s.system, "foo-shared", "2.0.0", "", s.artifact("2.0.0", two))
	s.module(map[string]string{"regular": "1.0.0"}, nil)
	// Chosen before the namespace has its own: that is not taken back.
	s.install("early", selects(modulesv1.ModuleRequest{Range: "<2.0.0"}))
	s.ready("early", "1.0.0")
	s.templateIn(s.namespace, "foo-shared", "1.5.0", "fast", s.artifact("1.5.0", own))
	s.templateIn(s.namespace, "foo-own", "1.5.0", "", s.artifact("1.5.0", own))

	installed := map[string]struct {
		reason   string
		changes  []installChange
		version  string
		catalog  modulesv1.Catalog
		template string
	}{
		"latest":           {"The namespace's own module stands before the system's, though that is newer.", nil, "1.5.0", modulesv1.CatalogLocal, "foo-own"},
		"system":           {"Who asks for the system's gets it.", []installChange{from(modulesv1.CatalogSystem)}, "2.0.0", modulesv1.CatalogSystem, "foo-shared"},
		"local":            {"Who asks for the local one gets it.", []installChange{from(modulesv1.CatalogLocal)}, "1.5.0", modulesv1.CatalogLocal, "foo-own"},
		"named":            {"A template of the name in the namespace is meant.", []installChange{named("foo-shared")}, "1.5.0", modulesv1.CatalogLocal, "foo-shared"},
		"named-in-system":  {"Unless the system's is asked for.", []installChange{named("foo-shared"), from(modulesv1.CatalogSystem)}, "2.0.0", modulesv1.CatalogSystem, "foo-shared"},
		"by-local-channel": {"Its own claims are its channels.", []installChange{byChannel("fast")}, "1.5.0", modulesv1.CatalogLocal, "foo-shared"},
	}
	for name, want := range installed {
		s.install(name, want.changes...)
	}
	refused := map[string]struct {
		reason string
		change installChange
		why    string
		text   string
	}{
		"hidden-version":  {"Whole modules are shadowed, not single releases.", byVersion("2.0.0"), modulesv1.VersionNotFoundReason, "2.0.0"},
		"hidden-channel":  {"The system's Module does not speak for the local catalogue.", byChannel("regular"), modulesv1.ChannelNotFoundReason, "it has fast"},
		"hidden-template": {"Templates are shadowed with their module.", named("foo-1.0.0"), modulesv1.TemplateNotFoundReason, "the System catalogue has one"},
	}
	for name, want := range refused {
		s.install(name, want.change)
	}
	for name, want := range installed {
		obj := s.ready(name, want.version)
		got := []string{string(obj.Status.Resolution.Catalog), obj.Status.Current.Template, obj.Status.Current.Namespace}
		namespace := s.namespace
		if want.catalog == modulesv1.CatalogSystem {
			namespace = s.system
		}
		if diff := cmp.Diff([]string{string(want.catalog), want.template, namespace}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, want.reason)
		}
		s.says("settings-"+name, want.version)
	}
	for name, want := range refused {
		if obj := s.failing(name, modulesv1.ResolvedCondition, want.why, want.text); obj.Status.Current != nil {
			t.Errorf("%s is installed: %s\n%s", name, asJSON(obj.Status.Current), want.reason)
		}
	}

	// The early one stays where it was, even when it looks anew, until its spec says otherwise.
	s.reconcile("early")
	if obj := s.ready("early", "1.0.0"); obj.Status.Resolution.Catalog != modulesv1.CatalogSystem {
		t.Errorf("early changed its catalogue by itself: %s", asJSON(obj.Status.Resolution))
	}
	s.change("early", from(modulesv1.CatalogLocal))
	s.ready("early", "1.5.0")
	s.exact("early", fooMembers("early", "1.5.0")...)
	// The other way is one to an older release, and no other catalogue is a way around that.
	s.change("early", from(modulesv1.CatalogSystem))
	s.held("early", "1.5.0", modulesv1.DowngradeBlockedReason, "1.0.0")
	// Which one it is now is said, and it may go back to what ran before.
	s.change("early", byVersion("1.0.0"), from(modulesv1.CatalogSystem))
	s.ready("early", "1.0.0")
}

func TestModuleTemplatesThatDisagreeAreNotPicked(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	one, two := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("2.0.0", fooFiles("2.0.0"))
	first := s.template("1.0.0", "", one)
	s.template("1.0.0", "regular", one)
	s.shows("foo-1.0.0", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.AliasReason, "foo-1.0.0-regular")
	s.shows("foo-1.0.0-regular", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.AliasReason, "foo-1.0.0")
	s.install("app", byChannel("regular"))
	s.install("first", byVersion("1.0.0"))
	s.ready("app", "1.0.0")
	s.ready("first", "1.0.0")
	before := len(only(s.memberCalls(), verbPatch))
	s.change("first", byChannel("regular"))
	if obj := s.ready("first", "1.0.0"); obj.Status.Current.Template != "foo-1.0.0-regular" {
		t.Errorf("an alias was not taken: %s", asJSON(obj.Status.Current))
	}
	if applied := only(s.memberCalls(), verbPatch)[before:]; len(applied) > 0 {
		t.Errorf("the way from a release to itself under another name applied\n%s", lines(applied))
	}

	// A second claim of the channel cancels both, and stops nothing that runs.
	s.templateIn(s.system, "foo-claim", "2.0.0", "regular", s.artifact("2.0.0", two))
	for _, name := range []string{"foo-1.0.0-regular", "foo-claim"} {
		s.stuck(name, modulesv1.ConflictCondition, metav1.ConditionTrue, modulesv1.ChannelConflictReason, "foo-1.0.0-regular, foo-claim")
		s.shows(name, modulesv1.OfferedCondition, metav1.ConditionFalse, modulesv1.ChannelConflictReason, "")
	}
	s.held("app", "1.0.0", modulesv1.ChannelConflictReason, "foo-claim")
	s.install("late", byChannel("regular"))
	s.failing("late", modulesv1.ResolvedCondition, modulesv1.ChannelConflictReason, "list the channel in the module")
	s.breaks("app", "1.0.0")
	module := s.module(map[string]string{"regular": "2.0.0"}, nil)
	s.ready("app", "2.0.0")
	s.ready("late", "2.0.0")
	s.shows("foo-1.0.0-regular", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.ChannelOverriddenReason, "2.0.0")
	s.untilTemplate("foo-claim", "it is in nobody's way any more", func(obj *modulesv1.ModuleTemplate) bool {
		return asJSON(obj.Status.Conditions) != "" && !strings.Contains(asJSON(obj.Status.Conditions), "Conflict")
	})
	s.point(module, "regular", to("1.0.0"))
	s.shows("foo-claim", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.ChannelOverriddenReason, "1.0.0")
	s.held("app", "2.0.0", modulesv1.DowngradeBlockedReason, "")

	// The version has its content from the template that had it first.
	s.younger(first, "foo-usurper", "1.0.0", s.artifact("2.0.0", two))
	s.stuck("foo-usurper", modulesv1.ConflictCondition, metav1.ConditionTrue, modulesv1.ReleaseConflictReason, "foo-1.0.0")
	s.shows("foo-usurper", modulesv1.OfferedCondition, metav1.ConditionFalse, modulesv1.ReleaseConflictReason, "")
	s.shows("foo-1.0.0", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.AliasReason, "")
	s.install("rightful", byVersion("1.0.0"))
	s.ready("rightful", "1.0.0")
	s.says("settings-rightful", "1.0.0")
	s.install("usurped", named("foo-usurper"))
	s.failing("usurped", modulesv1.UpToDateCondition, modulesv1.ReleaseConflictReason, "1.0.0")
}

// younger makes a template that was made after the other one by the API server's clock, which counts in seconds.
func (s moduleScene) younger(than *modulesv1.ModuleTemplate, name, version string, artifact modulesv1.TemplateArtifact) {
	s.t.Helper()
	for {
		obj := s.templateIn(s.system, name, version, "", artifact)
		if obj.CreationTimestamp.After(than.CreationTimestamp.Time) {
			return
		}
		s.drops(obj)
		s.vanishes(obj)
	}
}

func TestModuleOldTemplatesWorkAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	one, two := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("main", fooFiles("main"))
	old := func(name, channel string, manifest modulesv1.TemplateArtifact, annotations map[string]string) {
		s.make(&modulesv1.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.system, Name: name, Labels: map[string]string{modulesv1.ModuleNameLabel: "foo"}, Annotations: annotations,
			},
			Spec: modulesv1.ModuleTemplateSpec{Channel: channel, Artifact: manifest},
		})
	}
	old("foo-regular", "regular", s.artifact("stable", one), map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"})
	old("foo-tagged", "none", s.artifact("1.0.0", one), nil)
	old("foo-fast", "fast", s.artifact("main", two), nil)
	s.make(&modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "foo-stray"},
		Spec:       modulesv1.ModuleTemplateSpec{Channel: "regular", Artifact: s.artifact("1.0.0", one)},
	})
	s.stuck("foo-stray", modulesv1.OfferedCondition, metav1.ConditionFalse, modulesv1.ModuleUnknownReason, "")
	s.shows("foo-fast", modulesv1.OfferedCondition, metav1.ConditionTrue, modulesv1.VersionUnknownReason, "channel or template name only")

	s.install("annotated", byChannel("regular"))
	s.install("tagged", byVersion("1.0.0"))
	s.install("unknown", byChannel("fast"))
	s.install("named", named("foo-fast"))
	s.install("stray", named("foo-stray"))
	s.install("latest")
	s.ready("annotated", "1.0.0")
	s.ready("tagged", "1.0.0")
	s.ready("latest", "1.0.0")
	s.ready("unknown", "")
	s.ready("named", "")
	s.says("settings-unknown", "main")
	s.failing("stray", modulesv1.ResolvedCondition, modulesv1.ModuleUnknownReason, "")

	// Whether what has no version is newer, nobody can say.
	s.change("annotated", byChannel("fast"))
	s.held("annotated", "1.0.0", modulesv1.VersionUnknownReason, "foo-fast")
	s.change("unknown", byChannel("regular"))
	s.held("unknown", "", modulesv1.VersionUnknownReason, "set allowDowngradeTo to 1.0.0")
	s.change("unknown", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "1.0.0"}))
	s.ready("unknown", "1.0.0")
	s.exact("unknown", fooMembers("unknown", "1.0.0")...)
}
