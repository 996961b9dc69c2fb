package installation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/tests/testenv"
)

func TestReleaseIsChosenAndInstalled(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		module     modulesv1.ModuleRequest
		want       string
		selectedBy string
	}{
		"Channel": {
			reason: "a channel leads to the release that claims it",
			module: modulesv1.ModuleRequest{Name: "foo", Channel: "regular"}, want: "1.0.0", selectedBy: "channel/regular",
		},
		"Version": {
			reason: "a version is offered by the template without a channel",
			module: modulesv1.ModuleRequest{Name: "foo", Version: "1.0.0"}, want: "1.0.0", selectedBy: "version/1.0.0",
		},
		"Latest": {
			reason: "latest is the highest release that is in no channel",
			module: modulesv1.ModuleRequest{Name: "foo", Latest: true}, want: "2.0.0", selectedBy: "latest",
		},
		"Template": {
			reason: "a template can be named",
			module: modulesv1.ModuleRequest{TemplateRef: &modulesv1.LocalReference{Name: "foo-2.0.0"}}, want: "2.0.0", selectedBy: "template/foo-2.0.0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, nil)
			p.release("1.0.0", "")
			p.release("2.0.0", "")
			p.release("1.0.0", "regular")
			p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module = tc.module })
			obj := p.until(tc.reason, installed(tc.want))
			p.wantVersion("settings", tc.want)
			resolution := obj.Status.Resolution
			if resolution == nil || resolution.SelectedBy != tc.selectedBy || resolution.Catalog != modulesv1.CatalogLocal || len(resolution.Trace) == 0 {
				t.Errorf("%s: resolution %+v", tc.reason, resolution)
			}
			for _, condition := range []string{modulesv1.ResolvedCondition, modulesv1.AppliedCondition, modulesv1.HealthyCondition} {
				if !conditions.IsTrue(obj, condition) {
					t.Errorf("%s is not True: %s", condition, summary(obj))
				}
			}
			if got := p.column("Module"); got != "foo" {
				t.Errorf("column MODULE shows %q", got)
			}
			if inventory := obj.Status.Inventory; inventory == nil || inventory.Name != "foo" || inventory.Members != 1 || len(obj.Status.History) != 1 {
				t.Errorf("inventory %+v, history %+v", inventory, obj.Status.History)
			}
			p.wantTold(modulesv1.InstallSucceededReason)
		})
	}
}

func TestNothingToDoAsksNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	before := p.until("installed", installed("1.0.0"))
	all := func(request) bool { return true }
	asked := p.rests(3, 20)

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	after := p.until("a request is answered", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.LastHandledReconcileAt == "now" })
	if summary(before) != summary(after) {
		t.Errorf("status changed from %s\nto %s", summary(before), summary(after))
	}
	verified := p.wire.matching(all)[asked:]
	if !slices.ContainsFunc(verified, func(r request) bool { return r.verb == "PATCH" && strings.HasSuffix(r.path, "/configmaps/settings") }) {
		t.Errorf("a request asks for a full verification: %+v", verified)
	}
}

// TestInstallingTakesSixWrites: the finalizer, three of the Inventory, and a status before and after that. What is looked
// at then adds nothing, though there is a newer release to tell of. A round that begins before the cache has the status of
// the last one says the same again, and is refused.
func TestInstallingTakesSixWrites(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.release("1.1.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	obj := p.until("installed", installed("1.0.0"))
	p.rests(3, 20)
	written := p.wire.matching(func(r request) bool {
		return r.verb != "GET" && !r.refused && (strings.Contains(r.path, "/moduleinstallations/foo") || strings.Contains(r.path, "/inventories"))
	})
	if len(written) > 6 {
		t.Errorf("%d writes: %+v", len(written), written)
	}
	now := p.get()
	if obj.Status.Current.AppliedAt == nil || now.Status.Desired.AppliedAt != nil || len(obj.Status.AvailableUpgrades) != 1 {
		t.Errorf("current %+v, desired %+v, upgrades %+v", obj.Status.Current, now.Status.Desired, obj.Status.AvailableUpgrades)
	}
}

func TestUpgradeFollowsTheChannel(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "", configMap("old", "1.0.0"))
	p.release("2.0.0", "")
	module := &modulesv1.Module{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "foo"},
		Spec:       modulesv1.ModuleSpec{Channels: []modulesv1.Channel{{Name: "regular", Version: "1.0.0"}}},
	}
	p.create(module)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	p.until("first release", installed("1.0.0"))
	p.wantVersion("old", "1.0.0")

	module.Spec.Channels[0].Version = "2.0.0"
	check(t, p.client.Update(t.Context(), module))
	obj := p.until("second release", installed("2.0.0"))
	p.wantVersion("settings", "2.0.0")
	p.wantVersion("old", "")
	if obj.Status.Previous == nil || obj.Status.Previous.Version != "1.0.0" || len(obj.Status.History) != 2 {
		t.Errorf("previous %+v, history %+v", obj.Status.Previous, obj.Status.History)
	}
	p.wantTold(modulesv1.UpgradeSucceededReason)
}

func TestHoldKeepsHealing(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.release("2.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "2.0.0" })
	p.until("installed", installed("2.0.0"))

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "1.0.0" })
	obj := p.until("the downgrade is refused", is(modulesv1.UpToDateCondition, metav1.ConditionFalse, modulesv1.DowngradeBlockedReason))
	if pending := obj.Status.Pending; pending == nil || pending.Version != "1.0.0" || !strings.Contains(pending.Message, "allowDowngradeTo") {
		t.Errorf("pending %+v", pending)
	}
	if !conditions.IsReady(obj) || obj.Status.Current.Version != "2.0.0" {
		t.Errorf("what is installed works on: %s", summary(obj))
	}
	p.wantTold(modulesv1.DowngradeBlockedReason)

	p.tamper()
	testenv.Eventually(t, "drift is healed during the hold", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "2.0.0", got
	})
	p.wantTold(modulesv1.DriftHealedReason)

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Upgrade = &modulesv1.UpgradePolicy{AllowDowngradeTo: "1.0.0"}
	})
	p.until("the downgrade is allowed", installed("1.0.0"))
	p.wantVersion("settings", "1.0.0")
}

// TestUnreadableCatalogueKeepsWhatRuns: that nobody can say what should run is no reason to leave alone what does.
func TestUnreadableCatalogueKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))

	p.blind.Store(true)
	p.tamper()
	testenv.Eventually(t, "drift is healed", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
	obj := p.until("the error is told", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.FailedReason))
	if !strings.Contains(conditions.GetMessage(obj, meta.ReadyCondition), "out of order") || !conditions.IsTrue(obj, modulesv1.AppliedCondition) ||
		!conditions.IsTrue(obj, modulesv1.HealthyCondition) || !conditions.IsTrue(obj, modulesv1.ResolvedCondition) {
		t.Errorf("what is installed works on: %s", summary(obj))
	}
	if desired := obj.Status.Desired; desired == nil || desired.Version != "1.0.0" || obj.Status.Resolution == nil {
		t.Errorf("what was chosen is forgotten: desired %+v, resolution %+v", desired, obj.Status.Resolution)
	}
	p.wantTold(modulesv1.DriftHealedReason)

	p.blind.Store(false)
	p.until("the catalogue can be read again", installed("1.0.0"))
}

// TestWhatWasBegunIsReported: objects of it are there, so that its artifact is needed, though nobody selects it any more.
func TestWhatWasBegunIsReported(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("0.9.0", "")
	p.release("1.0.0", "")
	p.release("2.0.0", "", outOfReach)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	if obj := p.until("installed", installed("1.0.0")); obj.Status.Attempted != nil {
		t.Errorf("nothing is being applied: %+v", obj.Status.Attempted)
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	p.until("begun", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ForbiddenReason))
	p.wantVersion("settings", "2.0.0")
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "0.9.0" })
	obj := p.until("held", is(modulesv1.UpToDateCondition, metav1.ConditionFalse, modulesv1.DowngradeBlockedReason))
	got := map[string]*modulesv1.Release{
		"0.9.0": obj.Status.Desired, "1.0.0": obj.Status.Current, "2.0.0": obj.Status.Attempted,
	}
	for want, release := range got {
		if release == nil || release.Version != want {
			t.Errorf("want %s, got %+v", want, release)
		}
	}
	// What was out of reach may be there, for all that is known.
	p.giveEverywhere(deployer)
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "1.0.0" })
	if obj := p.until("back", installed("1.0.0")); obj.Status.Attempted != nil {
		t.Errorf("nothing is being applied: %+v", obj.Status.Attempted)
	}
	p.wantVersion("settings", "1.0.0")
}

// outOfReach is in a namespace where nobody has rights: a release with it cannot be applied in full.
const outOfReach = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out-of-reach, namespace: default}\n"

// wantTold waits for the event, which follows the status, and fails when it is told more than once.
func (p *plane) wantTold(reason string) {
	p.t.Helper()
	testenv.Eventually(p.t, "event "+reason, func(context.Context) (bool, string) { return len(p.events.of(reason)) > 0, "" })
	if told := p.events.of(reason); len(told) != 1 {
		p.t.Errorf("events %s: %q", reason, told)
	}
}

// wantWarned is wantTold for a warning.
func (p *plane) wantWarned(reason string) {
	p.t.Helper()
	p.wantTold(reason)
	if kinds := p.events.types(reason); !slices.Equal(kinds, []event.Type{event.Warning}) {
		p.t.Errorf("event %s is %s", reason, kinds)
	}
}

// tamper changes the ConfigMap of every release as somebody else.
func (p *plane) tamper() {
	p.t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"version":"tampered"}}`))
	check(p.t, p.client.Patch(p.t.Context(), obj, patch, client.FieldOwner("somebody")))
}

func TestManualUpgradeWaitsForItsPlan(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "", configMap("old", "1.0.0"))
	p.release("2.0.0", "", configMap("new", "2.0.0"), configMap("newer", "2.0.0"))
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
	})
	p.until("the first release needs no approval", installed("1.0.0"))

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	obj := p.until("planned", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil && obj.Status.Pending.Reason == modulesv1.AwaitingApprovalReason
	})
	plan := *obj.Status.Pending.Plan
	object := func(change modulesv1.PlannedChange, name string) modulesv1.PlannedObject {
		return modulesv1.PlannedObject{Change: change, Kind: "ConfigMap", Namespace: p.namespace, Name: name}
	}
	want := modulesv1.Plan{Digest: plan.Digest, Create: 2, Update: 1, Delete: 1, Objects: []modulesv1.PlannedObject{
		object(modulesv1.PlannedDelete, "old"), object(modulesv1.PlannedUpdate, "settings"),
		object(modulesv1.PlannedCreate, "new"), object(modulesv1.PlannedCreate, "newer"),
	}}
	if diff := cmp.Diff(want, plan); diff != "" || !strings.HasPrefix(plan.Digest, "sha256:") {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.wantVersion("settings", "1.0.0")

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Upgrade.Approve = "sha256:" + strings.Repeat("0", 64)
	})
	p.until("another digest approves nothing", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.ObservedGeneration == obj.Generation && obj.Status.Pending != nil && obj.Status.Pending.Plan != nil
	})
	p.wantVersion("settings", "1.0.0")
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade.Approve = plan.Digest })
	p.until("approved", installed("2.0.0"))
	p.wantVersion("new", "2.0.0")
	p.wantVersion("old", "")
}

// TestAnEditThatRemovesObjectsAsksFirst: where upgrades are asked for, an edit of the config that would remove something
// is as well, and one that removes nothing is not. Meanwhile drift is healed as it was.
func TestAnEditThatRemovesObjectsAsksFirst(t *testing.T) {
	t.Parallel()
	for _, mode := range []modulesv1.UpgradeMode{modulesv1.UpgradeManual, modulesv1.UpgradeNever} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, nil)
			p.release("1.0.0", "", configMap("extra", "1.0.0"))
			p.install(func(spec *modulesv1.ModuleInstallationSpec) {
				spec.Module.Version = "1.0.0"
				spec.Upgrade = &modulesv1.UpgradePolicy{Mode: mode}
			})
			p.until("installed", installed("1.0.0"))
			p.edit(func(obj *modulesv1.ModuleInstallation) {
				obj.Spec.Config = &modulesv1.InstallationConfig{CommonMetadata: &modulesv1.CommonMetadata{Labels: map[string]string{"edited": "once"}}}
			})
			p.until("what removes nothing needs no approval", installed("1.0.0"))

			p.edit(func(obj *modulesv1.ModuleInstallation) {
				obj.Spec.Config.Patches = []modulesv1.Patch{{Patch: "$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"}}
			})
			obj := p.until("planned", func(obj *modulesv1.ModuleInstallation) bool {
				return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil && obj.Status.Pending.Reason == modulesv1.AwaitingApprovalReason &&
					conditions.IsFalse(obj, modulesv1.UpToDateCondition)
			})
			plan := *obj.Status.Pending.Plan
			want := modulesv1.Plan{Digest: plan.Digest, Delete: 1, Objects: []modulesv1.PlannedObject{
				{Change: modulesv1.PlannedDelete, Kind: "ConfigMap", Namespace: p.namespace, Name: "extra"},
			}}
			if diff := cmp.Diff(want, plan); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			p.tamper()
			testenv.Eventually(t, "drift is healed meanwhile", func(context.Context) (bool, string) {
				got := p.version("settings")
				return got == "1.0.0", got
			})
			p.wantVersion("extra", "1.0.0")

			p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade.Approve = plan.Digest })
			p.until("approved", installed("1.0.0"))
			p.wantVersion("extra", "")
		})
	}
}

func TestPausedAndSuspendedLeaveObjectsAlone(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.release("2.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Management = modulesv1.ManagementPaused
		obj.Spec.Module.Version = "2.0.0"
	})
	p.until("paused", is(modulesv1.UpToDateCondition, metav1.ConditionFalse, modulesv1.PausedReason))
	p.tamper()
	p.until("drift is told", is(modulesv1.AppliedCondition, metav1.ConditionFalse, modulesv1.PausedReason))
	p.wantVersion("settings", "tampered")

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Suspend = true
		obj.Spec.Management = modulesv1.ManagementManaged
	})
	p.until("suspended", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.ObservedGeneration == obj.Generation })
	p.wantVersion("settings", "tampered")
	if got := p.column("Status"); !strings.HasPrefix(got, "Suspended") {
		t.Errorf("column Status has %q", got)
	}

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = false })
	p.until("resumed", installed("2.0.0"))
	p.wantVersion("settings", "2.0.0")
}

func TestIdentityIsTheTenants(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.give("powerless", "")
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.ServiceAccountName = "powerless"
	})
	obj := p.until("forbidden", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ForbiddenReason))
	if message := conditions.GetMessage(obj, meta.ReadyCondition); !strings.Contains(message, "powerless") || !strings.Contains(message, "configmaps") {
		t.Errorf("the message names neither who nor what: %s", message)
	}

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.ServiceAccountName = "nobody" })
	p.until("no such account", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ServiceAccountNotFoundReason))

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.ServiceAccountName = "" })
	obj = p.until("no account at all", is(meta.StalledCondition, metav1.ConditionTrue, modulesv1.ServiceAccountMissingReason))
	if conditions.IsReady(obj) {
		t.Errorf("it cannot be ready: %s", summary(obj))
	}

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.ServiceAccountName = deployer })
	p.until("installed", installed("1.0.0"))
	own := p.wire.matching(func(r request) bool { return r.as == "" && strings.Contains(r.path, "configmaps") })
	if len(own) > 0 {
		t.Errorf("requests for members as the controller itself: %+v", own)
	}
	prefix := "system:serviceaccount:" + p.namespace + ":"
	foreign := p.wire.matching(func(r request) bool { return r.as != "" && !strings.HasPrefix(r.as, prefix) })
	if len(foreign) > 0 {
		t.Errorf("requests as somebody else: %+v", foreign)
	}
}

func TestBrokenChannelKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	module := &modulesv1.Module{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "foo"},
		Spec:       modulesv1.ModuleSpec{Channels: []modulesv1.Channel{{Name: "regular", Version: "1.0.0"}}},
	}
	p.create(module)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	ready := conditions.GetMessage(p.until("installed", installed("1.0.0")), meta.ReadyCondition)

	before := module.DeepCopy()
	module.Spec.Channels[0].Version = "9.9.9"
	check(t, p.client.Patch(t.Context(), module, client.MergeFrom(before)))
	obj := p.until("unresolved", is(modulesv1.ResolvedCondition, metav1.ConditionFalse, modulesv1.ChannelTargetMissingReason))
	if !conditions.IsReady(obj) || conditions.IsStalled(obj) || obj.Status.Current == nil || obj.Status.Current.Version != "1.0.0" {
		t.Errorf("what is installed works on: %s", summary(obj))
	}
	p.tamper()
	began := time.Now()
	testenv.Eventually(t, "drift is healed", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
	t.Logf("drift was healed after %s", time.Since(began))
	// The Module's owner has to mend that, and the Module tells: not each of those that follow the channel.
	p.wantTold(modulesv1.DriftHealedReason)
	if told := p.events.of(modulesv1.ChannelTargetMissingReason); len(told) > 0 {
		t.Errorf("events %q", told)
	}
	obj = p.get()
	if now := conditions.GetMessage(obj, meta.ReadyCondition); !conditions.IsReady(obj) || !strings.HasPrefix(now, ready+"; held: ") {
		t.Errorf("Ready said %q, and now %q", ready, now)
	}
	if got := p.column("Pending"); got != modulesv1.ChannelTargetMissingReason {
		t.Errorf("column Pending has %q", got)
	}
	if obj.Status.Pending == nil || obj.Status.Pending.Reason != modulesv1.ChannelTargetMissingReason {
		t.Errorf("pending is %+v", obj.Status.Pending)
	}
}

// TestAChattyNeighbourMakesNoWork: somebody writes into an object of the release all the time, and touches nothing of it.
func TestAChattyNeighbourMakesNoWork(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	before := p.rounds.Load()
	const writes = 100
	for i := range writes {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}}
		note := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/beat":"%d"}}}`, i)
		check(t, p.client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(note))))
	}
	// The watch tells of the drift after all that.
	p.tamper()
	testenv.Eventually(t, "drift is healed", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
	if made := p.rounds.Load() - before; made > writes/5 {
		t.Errorf("%d rounds for %d writes that matter to nobody", made, writes)
	}
}
