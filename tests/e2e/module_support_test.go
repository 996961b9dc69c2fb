package e2e

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func supported(state modulesv1.SupportState, message, replacedBy string) templateChange {
	return func(spec *modulesv1.ModuleTemplateSpec) {
		spec.Support = &modulesv1.TemplateSupport{State: state, Message: message, ReplacedBy: replacedBy}
	}
}

// deprecated waits until an installation says that its release is not to stay.
func (s moduleScene) deprecated(name, version, reason string, texts ...string) {
	s.t.Helper()
	s.until(name, "tells that "+version+" is not to stay: "+reason, func(obj *modulesv1.ModuleInstallation) bool {
		c := conditions.Get(obj, modulesv1.DeprecatedCondition)
		for _, text := range texts {
			if c == nil || !strings.Contains(c.Message, text) {
				return false
			}
		}
		return isInstalled(obj, version) && c != nil && c.Reason == reason
	})
}

func TestModuleSupportCountsForNewChoices(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	old := s.template("1.0.0", "", s.publish("1.0.0", fooFiles("1.0.0")))
	s.release("1.1.0", fooFiles("1.1.0"), supported(modulesv1.SupportDeprecated, "Loses sessions", "1.2.0"))
	s.install("running")
	s.install("deprecated", byVersion("1.1.0"))
	s.ready("running", "1.0.0")
	s.ready("deprecated", "1.1.0")
	s.deprecated("deprecated", "1.1.0", modulesv1.ReleaseDeprecatedReason, "Loses sessions", "1.2.0")

	// What is withdrawn runs on where it runs, and is installed nowhere else.
	patch(s, old, func() { supported(modulesv1.SupportWithdrawn, "Leaks keys", "1.2.0")(&old.Spec) })
	s.install("new", byVersion("1.0.0"))
	s.failing("new", modulesv1.UpToDateCondition, modulesv1.ReleaseWithdrawnReason, "Leaks keys")
	s.failing("new", modulesv1.UpToDateCondition, modulesv1.ReleaseWithdrawnReason, "1.2.0")
	// Nothing that is supported is left, so that the highest one is better than none.
	s.ready("running", "1.1.0")
	s.change("running", byVersion("1.0.0"))
	s.held("running", "1.1.0", modulesv1.ReleaseWithdrawnReason, "Leaks keys")
	s.install("pinned", byVersion("1.1.0"))
	s.ready("pinned", "1.1.0")

	// A withdrawal reaches those that stay where they are.
	template := s.templateNamed("foo-1.1.0")
	patch(s, template, func() { supported(modulesv1.SupportWithdrawn, "Loses them all", "")(&template.Spec) })
	s.deprecated("pinned", "1.1.0", modulesv1.ReleaseWithdrawnReason, "Loses them all")
	s.ready("pinned", "1.1.0")
	s.breaks("pinned", "1.1.0")
	s.release("1.2.0", fooFiles("1.2.0"))
	s.install("latest")
	s.ready("latest", "1.2.0")
	s.change("running", selects(modulesv1.ModuleRequest{Latest: true}))
	obj := s.ready("running", "1.2.0")
	if conditions.Has(obj, modulesv1.DeprecatedCondition) {
		t.Errorf("a supported release is told to be deprecated: %s", asJSON(obj.Status.Conditions))
	}
	patch(s, template, func() { template.Spec.Support = nil })
	s.until("pinned", "is supported again", func(obj *modulesv1.ModuleInstallation) bool {
		return isInstalled(obj, "1.1.0") && !conditions.Has(obj, modulesv1.DeprecatedCondition)
	})
}

// templateNamed is a template of the system's catalogue as it is now.
func (s moduleScene) templateNamed(name string) *modulesv1.ModuleTemplate {
	s.t.Helper()
	obj := &modulesv1.ModuleTemplate{}
	if err := env.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.system, Name: name}, obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

func TestModuleTemplatesOnlyMoveOn(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	one, two := s.publish("1.0.0", fooFiles("1.0.0")), s.publish("2.0.0", fooFiles("2.0.0"))
	template := s.template("1.0.0", "regular", one)
	s.install("app", byChannel("regular"))
	s.install("named", named("foo-1.0.0-regular"))
	s.ready("app", "1.0.0")
	s.ready("named", "1.0.0")

	refused := map[string]struct {
		reason string
		change templateChange
		text   string
	}{
		"lower": {"A lower version is a downgrade for all who follow.", func(spec *modulesv1.ModuleTemplateSpec) {
			spec.Version, spec.Artifact = "0.9.0", s.artifact("0.9.0", two)
		}, "version that was installed may only become higher"},
		"prerelease": {"A prerelease is lower than its release.", func(spec *modulesv1.ModuleTemplateSpec) {
			spec.Version, spec.Artifact = "1.0.0-rc.1", s.artifact("1.0.0", two)
		}, "version that was installed may only become higher"},
		"build": {"Build metadata makes nothing higher.", func(spec *modulesv1.ModuleTemplateSpec) {
			spec.Version, spec.Artifact = "1.0.0+2", s.artifact("1.0.0", two)
		}, "version that was installed may only become higher"},
		"version alone":  {"Two versions are two artifacts.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Version = "2.0.0" }, "keeps its content"},
		"artifact alone": {"A version has one artifact.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Artifact = s.artifact("1.0.0", two) }, "keeps its content"},
		"path":           {"What is installed of it belongs to the artifact.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Artifact.Path = "deploy" }, "keeps its content"},
		"no version":     {"A version is not taken back.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Version = "" }, "version that was installed may only become higher"},
		"channel":        {"Who follows a channel is not moved to another.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Channel = "fast" }, "channel is immutable"},
		"no channel":     {"Nor out of it.", func(spec *modulesv1.ModuleTemplateSpec) { spec.Channel = "" }, "channel is immutable"},
		"module":         {"A release is one of its module.", func(spec *modulesv1.ModuleTemplateSpec) { spec.ModuleName = "bar" }, "moduleName is immutable"},
		"two artifacts": {"There is one place where the bytes are.", func(spec *modulesv1.ModuleTemplateSpec) {
			spec.Version, spec.Artifact = "2.0.0", s.artifact("2.0.0", two)
			spec.Artifact.SourceRef = &modulesv1.SourceReference{APIVersion: "v1", Kind: "OCIRepository", Name: "foo"}
		}, "exactly one of oci, git and sourceRef"},
	}
	for name, tc := range refused {
		before := s.templateNamed(template.Name)
		after := before.DeepCopy()
		tc.change(&after.Spec)
		err := env.Client.Patch(t.Context(), after, client.MergeFrom(before))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v, want %q\n%s", name, err, tc.text, tc.reason)
		}
	}
	patch(s, template, func() { template.Spec.Version, template.Spec.Artifact = "2.0.0", s.artifact("2.0.0", two) })
	for _, name := range []string{"app", "named"} {
		obj := s.ready(name, "2.0.0")
		if obj.Status.Previous == nil || obj.Status.Previous.Version != "1.0.0" || obj.Status.Previous.Template != template.Name {
			t.Errorf("%s does not remember 1.0.0 of %s: %s", name, template.Name, asJSON(obj.Status.Previous))
		}
		s.exact(name, fooMembers(name, "2.0.0")...)
	}
	// Both artifacts are kept: one runs, and one ran before.
	s.hasSources("OCIRepository of "+template.Name, "OCIRepository of "+template.Name)
}
