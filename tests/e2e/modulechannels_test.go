package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// module makes the Module foo, which points each channel at a version.
func (s moduleScene) module(channels map[string]string, consumers *modulesv1.Consumers) *modulesv1.Module {
	s.t.Helper()
	obj := &modulesv1.Module{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "foo"}, Spec: modulesv1.ModuleSpec{Consumers: consumers},
	}
	for name, version := range channels {
		obj.Spec.Channels = append(obj.Spec.Channels, modulesv1.Channel{Name: name, Version: version})
	}
	s.make(obj)
	return obj
}

// point moves a channel.
func (s moduleScene) point(module *modulesv1.Module, channel string, edit func(*modulesv1.Channel)) {
	s.t.Helper()
	patch(s, module, func() {
		at := slices.IndexFunc(module.Spec.Channels, func(c modulesv1.Channel) bool { return c.Name == channel })
		edit(&module.Spec.Channels[at])
	})
}

func to(version string) func(*modulesv1.Channel) {
	return func(channel *modulesv1.Channel) { channel.Version = version }
}

func upgrade(policy modulesv1.UpgradePolicy) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.Upgrade = &policy }
}

// breaks deletes settings of an installation, and waits until they are there again with the version.
func (s moduleScene) breaks(name, version string) {
	s.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-" + name}}
	if err := env.Client.Delete(s.t.Context(), config); err != nil {
		s.t.Fatal(err)
	}
	s.becomes(config.Name, version)
}

func TestModuleChannelPointersMoveInstallations(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		s.release(version, fooFiles(version))
	}
	module := s.module(map[string]string{"regular": "1.0.0", "fast": "1.1.0"}, nil)
	s.install("app", byChannel("regular"))
	s.install("fast", byChannel("fast"))
	s.ready("app", "1.0.0")
	s.ready("fast", "1.1.0")

	// A channel that is stopped moves nobody, keeps everybody, and takes nobody new.
	s.point(module, "regular", func(c *modulesv1.Channel) { c.Suspended, c.Message = true, "Under examination" })
	s.install("late", byChannel("regular"))
	late := s.failing("late", modulesv1.UpToDateCondition, modulesv1.ChannelSuspendedReason, "Under examination")
	if late.Status.Current != nil {
		t.Errorf("installed from a channel that is stopped: %s", asJSON(late.Status))
	}
	s.point(module, "regular", to("1.1.0"))
	s.held("app", "1.0.0", modulesv1.ChannelSuspendedReason, "Under examination")
	s.breaks("app", "1.0.0")
	s.held("app", "1.0.0", modulesv1.ChannelSuspendedReason, "")
	s.point(module, "regular", func(c *modulesv1.Channel) { c.Suspended = false })
	s.ready("app", "1.1.0")
	s.ready("late", "1.1.0")
	s.says("settings-app", "1.1.0")
	s.exact("app", fooMembers("app", "1.1.0")...)

	// A pointer that leads nowhere shows on the Module, and changes nothing else.
	s.point(module, "fast", to("9.9.9"))
	s.held("fast", "1.1.0", modulesv1.ChannelTargetMissingReason, "9.9.9")
	s.eventually("the module tells of the broken channel", func(ctx context.Context) (bool, string) {
		obj := &modulesv1.Module{}
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(module), obj)
		return err == nil && conditions.IsFalse(obj, modulesv1.ChannelsValidCondition) &&
			conditions.GetReason(obj, modulesv1.ChannelsValidCondition) == modulesv1.ChannelsBrokenReason, asJSON(obj.Status)
	})
	s.breaks("fast", "1.1.0")
	s.point(module, "fast", to("2.0.0"))
	s.ready("fast", "2.0.0")

	// A pointer that goes back moves nobody back.
	s.point(module, "fast", to("1.0.0"))
	held := s.held("fast", "2.0.0", modulesv1.DowngradeBlockedReason, "allowDowngradeTo to 1.0.0")
	if held.Status.Desired.Version != "1.0.0" || held.Status.Pending.Version != "1.0.0" {
		t.Errorf("status does not say where the channel points: %s", asJSON(held.Status))
	}
	s.told("fast", corev1.EventTypeWarning, modulesv1.DowngradeBlockedReason, "1.0.0")
	s.breaks("fast", "2.0.0")
	s.held("fast", "2.0.0", modulesv1.DowngradeBlockedReason, "")
	s.change("fast", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "1.1.0"}))
	s.held("fast", "2.0.0", modulesv1.DowngradeBlockedReason, "")
	s.change("fast", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "1.0.0"}))
	s.ready("fast", "1.0.0")
	s.says("settings-fast", "1.0.0")
	s.exact("fast", fooMembers("fast", "1.0.0")...)
}

func TestModuleUpgradesWaitForConsent(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("manual", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}))
	s.install("never", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeNever}))
	s.install("patch", upgrade(modulesv1.UpgradePolicy{MaxStep: modulesv1.StepPatch}))
	for _, name := range []string{"manual", "never", "patch"} {
		s.ready(name, "1.0.0")
	}
	s.release("1.1.0", fooFiles("1.1.0"))
	s.held("never", "1.0.0", modulesv1.UpgradesNeverReason, "1.1.0")
	s.until("patch", "1.1.0 is too large a step", func(obj *modulesv1.ModuleInstallation) bool {
		upgrades := obj.Status.AvailableUpgrades
		return isInstalled(obj, "1.0.0") && len(upgrades) == 1 && upgrades[0].Version == "1.1.0" && !upgrades[0].Allowed &&
			upgrades[0].Reason == modulesv1.UpgradeBlockedReason
	})
	withPlan := func(version string) *modulesv1.Plan {
		t.Helper()
		obj := s.until("manual", "has a plan for "+version, func(obj *modulesv1.ModuleInstallation) bool {
			return obj.Status.Pending != nil && obj.Status.Pending.Version == version && obj.Status.Pending.Plan != nil
		})
		return obj.Status.Pending.Plan
	}
	plan := withPlan("1.1.0")
	s.held("manual", "1.0.0", modulesv1.AwaitingApprovalReason, "")
	if plan.Create != 1 || plan.Update != 1 || plan.Delete != 1 {
		t.Errorf("the plan is %s, want one object created, changed and removed each", asJSON(plan))
	}
	s.told("manual", corev1.EventTypeNormal, modulesv1.AwaitingApprovalReason, "1.1.0")
	s.says("settings-manual", "1.0.0")

	// What was approved is a plan, and not whatever comes after it.
	s.release("1.2.0", fooFiles("1.2.0"))
	next := withPlan("1.2.0")
	if next.Digest == plan.Digest {
		t.Fatal("two plans have one digest")
	}
	s.change("manual", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: plan.Digest}))
	s.held("manual", "1.0.0", modulesv1.AwaitingApprovalReason, "")
	s.change("manual", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: next.Digest}))
	s.ready("manual", "1.2.0")
	s.says("settings-manual", "1.2.0")
	s.exact("manual", fooMembers("manual", "1.2.0")...)
	s.says("settings-never", "1.0.0")
	s.change("never", upgrade(modulesv1.UpgradePolicy{}))
	s.ready("never", "1.2.0")
	s.change("patch", byVersion("1.1.0"))
	s.held("patch", "1.0.0", modulesv1.UpgradeBlockedReason, "1.1.0")
	s.release("1.0.1", fooFiles("1.0.1"))
	s.change("patch", func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version, spec.Module.Latest = "", true })
	s.ready("patch", "1.0.1")
	s.says("settings-patch", "1.0.1")
}

func TestModuleConsumersAreLetInByTheirNamespace(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.module(map[string]string{"regular": "1.0.0"}, &modulesv1.Consumers{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"foo": "allowed"}},
	})
	s.install("app", byChannel("regular"))
	s.failing("app", modulesv1.UpToDateCondition, modulesv1.ConsumerNotAllowedReason, "")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch(s, namespace, func() { metav1.SetMetaDataLabel(&namespace.ObjectMeta, "foo", "allowed") })
	s.ready("app", "1.0.0")
	patch(s, namespace, func() { delete(namespace.Labels, "foo") })
	s.held("app", "1.0.0", modulesv1.ConsumerNotAllowedReason, "")
	s.breaks("app", "1.0.0")
}
