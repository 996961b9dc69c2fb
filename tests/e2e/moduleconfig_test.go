package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func (s moduleScene) drop(name string) {
	s.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := env.Client.Delete(s.t.Context(), config); err != nil {
		s.t.Fatal(err)
	}
}

func TestModuleDependenciesComeFirst(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.DependsOn = []modulesv1.Dependency{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "database", ReadyExpr: "dep.data.state == 'up' && self.metadata.name == 'app'",
		}}
	})
	s.until("app", "waits for what is missing", func(obj *modulesv1.ModuleInstallation) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Reason == modulesv1.DependencyNotReadyReason && strings.Contains(ready.Message, "database")
	})
	if live, err := s.labelled(t.Context(), s.id("app")); err != nil || len(live) > 0 {
		t.Errorf("applied before its dependency: %q, %v", live, err)
	}
	database := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "database"}, Data: map[string]string{"state": "down"}}
	s.make(database)
	s.until("app", "waits for what is not ready", func(obj *modulesv1.ModuleInstallation) bool {
		return strings.Contains(conditions.GetMessage(obj, meta.ReadyCondition), "is not ready")
	})
	patch(s, database, func() { database.Data["state"] = "up" })
	s.ready("app", "1.0.0")

	// It is asked for the next release, too, and what is installed is kept meanwhile.
	patch(s, database, func() { database.Data["state"] = "down" })
	s.release("1.1.0", fooFiles("1.1.0"))
	s.held("app", "1.0.0", modulesv1.DependencyNotReadyReason, "database")
	s.breaks("app", "1.0.0")
	patch(s, database, func() { database.Data["state"] = "up" })
	s.ready("app", "1.1.0")
}

func TestModulePausedAndSuspendedInstallationsAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	for _, name := range []string{"paused", "suspended", "managed"} {
		s.install(name)
	}
	for _, name := range []string{"paused", "suspended", "managed"} {
		s.ready(name, "1.0.0")
	}
	s.change("paused", func(spec *modulesv1.ModuleInstallationSpec) { spec.Management = modulesv1.ManagementPaused })
	s.change("suspended", func(spec *modulesv1.ModuleInstallationSpec) { spec.Suspend = true })
	s.until("paused", "is paused", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.ObservedGeneration == obj.Generation })
	for _, name := range []string{"paused", "suspended", "managed"} {
		s.drop("settings-" + name)
	}
	s.until("paused", "tells of the drift", func(obj *modulesv1.ModuleInstallation) bool {
		applied := conditions.Get(obj, modulesv1.AppliedCondition)
		return applied != nil && applied.Status == metav1.ConditionFalse && applied.Reason == modulesv1.PausedReason &&
			strings.Contains(applied.Message, "settings-paused")
	})
	s.release("1.1.0", fooFiles("1.1.0"))
	s.ready("managed", "1.1.0")
	s.until("paused", "tells of the release", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Reason == modulesv1.PausedReason && obj.Status.Pending.Version == "1.1.0"
	})
	s.says("settings-paused", "")
	s.says("settings-suspended", "")
	for _, name := range []string{"paused", "suspended"} {
		s.change(name, func(spec *modulesv1.ModuleInstallationSpec) { spec.Management, spec.Suspend = "", false })
		s.ready(name, "1.1.0")
		s.becomes("settings-"+name, "1.1.0")
		s.exact(name, fooMembers(name, "1.1.0")...)
	}
}

func TestModuleConfigShapesWhatIsInstalled(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	elsewhere := env.NewNamespace(t)
	s.release("1.0.0", map[string]string{
		"kustomization.yaml":  "resources: [base.yaml]\nconfigMapGenerator:\n- name: made\n  literals:\n  - colour=${colour}\ngeneratorOptions: {disableNameSuffixHash: true}\n",
		"base.yaml":           strings.ReplaceAll(deployment, "${instance}", "fixed"),
		"not-a-resource.yaml": settings("stray", "1.0.0"),
	})
	s.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "values"}, Data: map[string]string{"colour": "red"}})
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config = &modulesv1.InstallationConfig{
			TargetNamespace: elsewhere,
			SubstituteFrom:  []modulesv1.SubstituteReference{{Kind: "ConfigMap", Name: "values"}},
			Images:          []modulesv1.Image{{Name: "foo", NewName: "mirror.example.com/foo", NewTag: "v2"}},
			Patches:         []modulesv1.Patch{{Patch: "- {op: remove, path: /spec/absent}", Target: &modulesv1.PatchTarget{Kind: "Deployment"}}},
			CommonMetadata:  &modulesv1.CommonMetadata{Labels: map[string]string{"team": "a"}},
		}
	})
	s.failing("app", modulesv1.AppliedCondition, modulesv1.BuildFailedReason, "absent")
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.Patches[0].Patch = "- {op: add, path: /spec/revisionHistoryLimit, value: 3}"
	})
	s.ready("app", "1.0.0")
	s.exact("app", "ConfigMap/made", "Deployment/foo-fixed")
	made := &corev1.ConfigMap{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: elsewhere, Name: "made"}, made); err != nil {
		t.Fatal(err)
	}
	if made.Data["colour"] != "red" || made.Labels["team"] != "a" {
		t.Errorf("made is %s", asJSON(made))
	}
	deployed := s.deployment(elsewhere, "foo-fixed")
	if image := deployed.Spec.Template.Spec.Containers[0].Image; image != "mirror.example.com/foo:v2" || *deployed.Spec.RevisionHistoryLimit != 3 {
		t.Errorf("the Deployment has the image %s and keeps %d revisions", image, *deployed.Spec.RevisionHistoryLimit)
	}
}

func TestModuleDefaultConfigIsTheUsersOnceItIsThere(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"), withDefaultConfig("first"))
	s.install("app")
	s.install("without", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.DefaultConfig = modulesv1.DefaultConfigIgnore
	})
	s.ready("without", "1.0.0")
	s.ready("app", "1.0.0")
	s.becomes("defaults", "first")
	config, err := s.configMap(t.Context(), "defaults")
	if err != nil {
		t.Fatal(err)
	}
	if _, member := config.Labels[partOf]; member {
		t.Error("the default configuration is a member")
	}
	patch(s, config, func() { config.Data["version"] = "mine" })
	s.reconcile("app")
	s.release("1.1.0", fooFiles("1.1.0"), withDefaultConfig("second"))
	s.ready("app", "1.1.0")
	s.says("defaults", "mine")
	s.drop("defaults")
	s.reconcile("app")
	s.release("1.2.0", fooFiles("1.2.0"), withDefaultConfig("third"))
	s.ready("app", "1.2.0")
	s.says("defaults", "")
}

func withDefaultConfig(version string) templateChange {
	return func(spec *modulesv1.ModuleTemplateSpec) {
		spec.DefaultConfig = &runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"defaults"},"data":{"version":%q}}`, version)}
	}
}

func TestModuleThatRendersToNothingRemovesNothing(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app")
	s.ready("app", "1.0.0")
	s.release("1.1.0", map[string]string{"empty.yaml": "# nothing\n"})
	obj := s.failing("app", modulesv1.UpToDateCondition, modulesv1.EmptyRenderReason, "")
	if obj.Status.Current.Version != "1.0.0" {
		t.Errorf("nothing counts as installed: %s", asJSON(obj.Status))
	}
	s.exact("app", fooMembers("app", "1.0.0")...)
	s.breaks("app", "1.0.0")
	s.release("1.2.0", fooFiles("1.2.0"))
	s.ready("app", "1.2.0")
	s.exact("app", fooMembers("app", "1.2.0")...)
}

func TestModulePruningIsLastAndBounded(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	files := fooFiles("1.0.0")
	for i := range 4 {
		files[fmt.Sprintf("more-%d.yaml", i)] = settings(fmt.Sprintf("more-%d", i), "1.0.0")
	}
	s.release("1.0.0", files)
	half := int32(40)
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Prune = &modulesv1.PrunePolicy{MaxPercent: &half} })
	s.ready("app", "1.0.0")
	before := append(fooMembers("app", "1.0.0"), "ConfigMap/more-0-app", "ConfigMap/more-1-app", "ConfigMap/more-2-app", "ConfigMap/more-3-app")

	// The next release is not healthy: one replica never comes up where there are no nodes.
	next := fooFiles("1.0.0")
	next["deployment.yaml"] = strings.Replace(deployment, "replicas: 0", "replicas: ${replicas:=1}", 1)
	s.release("1.1.0", next)
	s.until("app", "waits for health", func(obj *modulesv1.ModuleInstallation) bool {
		healthy := conditions.Get(obj, modulesv1.HealthyCondition)
		return obj.Status.Current != nil && obj.Status.Current.Version == "1.1.0" && healthy != nil && healthy.Status == metav1.ConditionUnknown &&
			strings.Contains(healthy.Message, "foo-app")
	})
	s.exact("app", append(before, "Deployment/foo-app")...)
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.Substitute["replicas"] = "0" })
	s.until("app", "does not remove as much", func(obj *modulesv1.ModuleInstallation) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Reason == modulesv1.PruneBlockedReason && conditions.IsTrue(obj, modulesv1.HealthyCondition)
	})
	s.exact("app", append(before, "Deployment/foo-app")...)
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Prune = nil })
	s.ready("app", "1.1.0")
	s.exact("app", append(fooMembers("app", "1.0.0"), "Deployment/foo-app")...)
	s.told("app", corev1.EventTypeNormal, modulesv1.PrunedReason, "4 objects")
}

func TestModuleInstallationsDoNotFightForAnObject(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{"shared.yaml": settings("shared", "1.0.0"), "own.yaml": strings.ReplaceAll(settings("own", "1.0.0"), "instance", "own")})
	shares := func(own string) installChange {
		return func(spec *modulesv1.ModuleInstallationSpec) {
			spec.Config.Substitute = map[string]string{"instance": "one", "own": own}
		}
	}
	s.install("first", shares("first"))
	s.ready("first", "1.0.0")
	s.install("second", shares("second"))
	s.failing("second", modulesv1.AppliedCondition, modulesv1.OwnershipConflictReason, s.namespace+"/first")
	s.told("second", corev1.EventTypeWarning, modulesv1.OwnershipConflictReason, "shared-one")
	s.exact("first", "ConfigMap/shared-one", "ConfigMap/own-first")
	s.ready("first", "1.0.0")
	s.remove("first")
	s.gone("first")
	s.ready("second", "1.0.0")
	s.exact("second", "ConfigMap/shared-one", "ConfigMap/own-second")
	s.eventually("the first one's own object is gone", func(ctx context.Context) (bool, string) {
		obj, err := s.configMap(ctx, "own-first")
		return err == nil && obj == nil, fmt.Sprint(obj, err)
	})
}
