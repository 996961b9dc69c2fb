package installation_test

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/tests/testenv"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 1
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: registry.example/server}]}
`

// rollOut gives the Deployment the status that its controller would, which does not run here.
func (p *plane) rollOut() {
	p.t.Helper()
	p.rollOutOf("server")
}

func (p *plane) rollOutOf(name string) {
	p.t.Helper()
	obj := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: p.namespace, Name: name}
	testenv.Eventually(p.t, "the Deployment is applied", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, key, obj)
		return err == nil, "not there"
	})
	before := obj.DeepCopy()
	obj.Status = appsv1.DeploymentStatus{
		ObservedGeneration: obj.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	check(p.t, p.client.Status().Patch(p.t.Context(), obj, client.MergeFrom(before)))
}

func TestApprovedUpgradeIsCarriedThrough(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "", configMap("old", "1.0.0"))
	p.release("2.0.0", "", deployment)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
	})
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	obj := p.until("planned", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil
	})
	plan := obj.Status.Pending.Plan.Digest
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade.Approve = plan })
	obj = p.until("waits for the Deployment", is(modulesv1.HealthyCondition, metav1.ConditionUnknown, modulesv1.ProgressingReason))
	if obj.Status.Pending != nil || !conditions.IsReconciling(obj) || !conditions.IsUnknown(obj, meta.ReadyCondition) {
		t.Errorf("it is under way, and held by nothing: %s", summary(obj))
	}
	p.wantVersion("settings", "2.0.0")
	// What is no longer needed stays until the new release is healthy.
	p.wantVersion("old", "1.0.0")

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	obj = p.until("looked at again", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.LastHandledReconcileAt == "now" })
	if obj.Status.Pending != nil {
		t.Errorf("what was approved is held again: %s", summary(obj))
	}
	p.rollOut()
	p.until("healthy", installed("2.0.0"))
	p.wantVersion("old", "")
}

// TestEditedConfigNeedsAnApprovalOfItsOwn: what was approved is a plan, and the config is part of it until all of the
// release is applied.
func TestEditedConfigNeedsAnApprovalOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.release("2.0.0", "", configMap("painted", "${color}"), outOfReach)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
		spec.Config = &modulesv1.InstallationConfig{Substitute: map[string]string{"color": "red"}}
	})
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Version = "2.0.0" })
	asked := func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil && obj.Status.ObservedGeneration == obj.Generation
	}
	red := p.until("planned", asked).Status.Pending.Plan.Digest
	underWay := func(obj *modulesv1.ModuleInstallation) bool {
		return is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ForbiddenReason)(obj) && obj.Status.Pending == nil
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade.Approve = red })
	p.until("begun", underWay)
	p.wantVersion("painted", "red")

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Config.Substitute["color"] = "blue" })
	obj := p.until("the edit is held", asked)
	blue := obj.Status.Pending.Plan.Digest
	if blue == red || obj.Status.Pending.Reason != modulesv1.AwaitingApprovalReason || !conditions.IsUnknown(obj, meta.ReadyCondition) {
		t.Errorf("plan %s, approved was %s: %s", blue, red, summary(obj))
	}
	p.wantVersion("painted", "red")
	if got := p.inventory().Data.Attempt; got == nil || got.Release.Version != "2.0.0" {
		t.Errorf("attempt %+v", got)
	}

	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Config.Substitute["color"] = "red" })
	p.until("what was approved goes on", underWay)
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade.Approve = "" })
	p.until("what was begun needs no more approval", underWay)

	// It is held as well while the spec leads to a third release.
	p.release("3.0.0", "")
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Module.Version = "3.0.0"
		obj.Spec.Config.Substitute["color"] = "green"
	})
	p.until("both are held", asked)
	p.wantVersion("painted", "red")

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Module.Version = "2.0.0"
		obj.Spec.Config.Substitute["color"] = "blue"
		obj.Spec.Upgrade.Approve = blue
	})
	p.until("the edit is approved", underWay)
	p.wantVersion("painted", "blue")
}

func TestUnhealthyReleaseFailsAfterItsTime(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(options *installation.Options) { options.MaxTimeout = time.Second })
	p.release("1.0.0", "", deployment)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Timeout = &metav1.Duration{Duration: time.Hour} // The operator allows a second.
	})
	obj := p.until("time is up", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.HealthCheckFailedReason))
	if !conditions.IsTrue(obj, modulesv1.AppliedCondition) || !conditions.IsFalse(obj, modulesv1.HealthyCondition) {
		t.Errorf("it is applied, and not healthy: %s", summary(obj))
	}
	p.rollOut()
	p.until("it is healthy after all", installed("1.0.0"))
}

// TestATemplateThatVanishesRollsNothingBack: an attempt may have changed data, so that the release before is none to go back
// to unasked.
func TestATemplateThatVanishesRollsNothingBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	template := p.release("2.0.0", "", deployment)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Range = "<2.0.0" })
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Module.Range = "*" })
	p.until("half way", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Attempted != nil && p.version("settings") == "2.0.0"
	})
	check(t, p.client.Delete(t.Context(), template))
	obj := p.until("held", is(modulesv1.UpToDateCondition, metav1.ConditionFalse, modulesv1.DowngradeBlockedReason))
	if conditions.IsTrue(obj, modulesv1.HealthyCondition) || obj.Status.Attempted == nil || obj.Status.Attempted.Version != "2.0.0" {
		t.Errorf("%s", summary(obj))
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Force = true })
	p.until("looked at again", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.ObservedGeneration == obj.Generation })
	p.wantVersion("settings", "2.0.0")
}
