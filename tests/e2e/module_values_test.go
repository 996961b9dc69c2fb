package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// values waits until the ConfigMap values-app has the data, as far as they are named.
func (s moduleScene) values(want map[string]string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the values are %v", want), func(ctx context.Context) (bool, string) {
		obj, err := s.configMap(ctx, "values-app")
		if err != nil || obj == nil {
			return false, fmt.Sprint("there is none; ", err)
		}
		for key, value := range want {
			if obj.Data[key] != value {
				return false, asJSON(obj.Data)
			}
		}
		return true, ""
	})
}

func TestModuleVariablesComeFromWhereTheSpecSays(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{
		"values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values-${instance}\ndata:\n" +
			"  own: \"${own}\"\n  first: \"${first}\"\n  both: \"${both}\"\n  default: \"${optional:=none}\"\n",
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token-${instance}\nstringData:\n  token: ${token}\n",
	})
	s.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "first"}, Data: map[string]string{"own": "first", "first": "first", "both": "first"}})
	s.install("app", installEvery(time.Second), func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.Substitute["own"] = "mine"
		spec.Config.SubstituteFrom = []modulesv1.SubstituteReference{
			{Kind: "ConfigMap", Name: "first"}, {Kind: "Secret", Name: "second"}, {Kind: "ConfigMap", Name: "third", Optional: true},
		}
	})
	s.failing("app", modulesv1.AppliedCondition, modulesv1.BuildFailedReason, "second")
	if live, err := s.labelled(t.Context(), s.id("app")); err != nil || len(live) > 0 {
		t.Errorf("installed without its values: %q, %v", live, err)
	}
	s.secret("second", map[string]string{"token": "canary-of-a-value-90ab", "both": "canary-second-1"})
	s.ready("app", "1.0.0")
	s.exact("app", "ConfigMap/values-app", "Secret/token-app")
	s.values(map[string]string{"own": "mine", "first": "first", "both": "canary-second-1", "default": "none"})

	// What is optional counts once it is there, and an edit is noticed by the interval.
	s.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "third"}, Data: map[string]string{"optional": "third", "both": "third"}})
	s.values(map[string]string{"both": "third", "default": "third"})
	s.secret("second", map[string]string{"token": "canary-of-a-newer-value-17", "both": "canary-second-2"})
	s.eventually("the Secret follows", func(ctx context.Context) (bool, string) {
		obj := &corev1.Secret{}
		err := env.Client.Get(ctx, s.key("token-app"), obj)
		return err == nil && string(obj.Data["token"]) == "canary-of-a-newer-value-17", fmt.Sprint(err)
	})
	s.values(map[string]string{"both": "third"})

	// Values that go away later keep what was made with them.
	s.dropSecret("second")
	s.until("app", "its values are missing", func(obj *modulesv1.ModuleInstallation) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == modulesv1.BuildFailedReason && strings.Contains(ready.Message, "second")
	})
	s.drop("values-app")
	s.values(map[string]string{"own": "mine", "both": "third"})
	s.secret("second", map[string]string{"token": "canary-of-the-last-value-3", "both": "canary-second-3"})
	s.ready("app", "1.0.0")
	s.tellsNoSecrets()
}

func TestModuleConfigIsTakenBackAsItWasGiven(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	elsewhere := env.NewNamespace(t)
	files := fooFiles("1.0.0")
	files["deployment.yaml"] = strings.Replace(deployment, "name: foo-${instance}\n", "name: foo-${instance}\n  labels: {tier: web}\n", 1)
	s.release("1.0.0", files)
	s.install("app")
	s.ready("app", "1.0.0")
	members := append(fooMembers("app", "1.0.0"), "Deployment/foo-app")
	s.exact("app", members...)

	digest := "sha256:" + strings.Repeat("ab", 32)
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.TargetNamespace = elsewhere
		spec.Config.Images = []modulesv1.Image{{Name: "foo", NewName: "mirror.example.com/foo", Digest: digest}}
		spec.Config.CommonMetadata = &modulesv1.CommonMetadata{
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"example.com/cost": "42"},
		}
		spec.Config.Patches = []modulesv1.Patch{
			{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: any}\nspec: {revisionHistoryLimit: 3}\n", Target: &modulesv1.PatchTarget{Kind: "Deploy.*", LabelSelector: "tier=web,tier!=cache"}},
			{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: foo-${instance}\nspec:\n  template:\n    spec:\n      containers:\n      - {name: main, env: [{name: COLOUR, value: red}]}\n"},
			{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: only-1.0.0-${instance}\n$patch: delete\n"},
			{Patch: "- {op: replace, path: /data/version, value: patched}\n", Target: &modulesv1.PatchTarget{Kind: "ConfigMap", Name: "settings-.*"}},
		}
	})
	s.until("app", "moved", func(obj *modulesv1.ModuleInstallation) bool {
		return isInstalled(obj, "1.0.0") && conditions.IsTrue(obj, modulesv1.UpToDateCondition)
	})
	s.exact("app", "ConfigMap/settings-app", "ServiceAccount/foo-app", "Role/foo-app", "Deployment/foo-app")
	s.says("settings-app", "")
	there := s.inside(elsewhere)
	there.says("settings-app", "patched")
	deployed := s.deployment(elsewhere, "foo-app")
	container := deployed.Spec.Template.Spec.Containers[0]
	if container.Image != "mirror.example.com/foo@"+digest || *deployed.Spec.RevisionHistoryLimit != 3 || len(container.Env) != 1 || container.Env[0].Value != "red" {
		t.Errorf("the Deployment is not as the config has it: %s", asJSON(deployed.Spec))
	}
	if deployed.Labels["team"] != "a" || deployed.Labels["tier"] != "web" || deployed.Annotations["example.com/cost"] != "42" {
		t.Errorf("the Deployment's metadata are %s", asJSON(deployed.ObjectMeta))
	}

	// A patch that cannot be read changes nothing.
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.Patches[3].Patch = "- {op: test" })
	s.failing("app", modulesv1.AppliedCondition, modulesv1.BuildFailedReason, "patch")
	there.says("settings-app", "patched")
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config = &modulesv1.InstallationConfig{Substitute: map[string]string{"instance": "app"}}
	})
	s.ready("app", "1.0.0")
	s.exact("app", members...)
	s.says("settings-app", "1.0.0")
	there.says("settings-app", "")
	back := s.deployment(s.namespace, "foo-app")
	if back.Labels["team"] != "" || back.Annotations["example.com/cost"] != "" || back.Spec.Template.Spec.Containers[0].Image != "foo" {
		t.Errorf("the config was not taken back: %s %s", asJSON(back.ObjectMeta), asJSON(back.Spec))
	}
}

// withDefault gives a release a default configuration of its own name.
func withDefault(name, version string) templateChange {
	return func(spec *modulesv1.ModuleTemplateSpec) {
		spec.DefaultConfig = &runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"version":%q}}`, name, version)}
	}
}

func TestModuleDefaultConfigGoesWithWhatItIsFor(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"), withDefault("made", "default"))
	users := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "taken"}, Data: map[string]string{"version": "users"}}
	s.make(users)
	s.release("2.0.0", fooFiles("2.0.0"), withDefault("taken", "default"))
	s.install("first", byVersion("1.0.0"))
	s.install("ignores", byVersion("1.0.0"), func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.DefaultConfig = modulesv1.DefaultConfigIgnore
	})
	s.install("second", byVersion("2.0.0"))
	for name, version := range map[string]string{"first": "1.0.0", "ignores": "1.0.0", "second": "2.0.0"} {
		s.ready(name, version)
	}
	s.becomes("made", "default")
	s.says("taken", "users")

	// What was there before is the user's for good: it is neither made again nor removed, and nothing is made in its place.
	s.release("2.1.0", fooFiles("2.1.0"), withDefault("late", "default"))
	s.change("second", byVersion("2.1.0"))
	s.ready("second", "2.1.0")
	s.says("late", "")
	s.drop("taken")
	s.change("second", byVersion("2.0.0"))
	s.ready("second", "2.0.0")
	s.says("taken", "")
	s.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "taken"}, Data: map[string]string{"version": "users"}})
	s.remove("second")
	s.gone("second")
	s.says("taken", "users")

	// What was made goes with its installation, also when a user has made it its own meanwhile.
	config, err := s.configMap(t.Context(), "made")
	if err != nil {
		t.Fatal(err)
	}
	patch(s, config, func() { config.Data["version"], config.Annotations = "mine", nil })
	s.reconcile("first")
	s.says("made", "mine")
	before := len(s.memberCalls())
	s.remove("first")
	s.gone("first")
	s.says("made", "")
	if deleted := only(s.memberCalls()[before:], verbDelete); len(deleted) == 0 || deleted[0].Object.Name != "made" {
		t.Errorf("the default configuration was not removed first:\n%s", lines(deleted))
	}

	// Who did without gets it with the edit that asks for it.
	s.change("ignores", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.DefaultConfig = "" })
	s.becomes("made", "default")
	s.change("ignores", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	})
	s.remove("ignores")
	s.gone("ignores")
	s.says("made", "default")
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(users), users); err != nil {
		t.Error(err)
	}
}
