package installation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

func TestDeletionRemovesWhatWasInstalled(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.delete()
	p.gone()
	p.wantVersion("settings", "")
	p.wantTold(modulesv1.UninstalledReason)
}

// TestRemovalInProgressIsNoEvent: an object that takes its time is waited for, and Ready says so.
func TestRemovalInProgressIsNoEvent(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}}
	hold := func(finalizers string) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
		check(t, p.client.Patch(t.Context(), settings, patch))
	}
	hold(`["example.com/slow"]`)
	p.delete()
	p.until("it waits", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ProgressingReason))
	hold(`null`)
	p.gone()
	p.wantTold(modulesv1.UninstalledReason)
	if told := p.events.of(modulesv1.ProgressingReason); len(told) > 0 {
		t.Errorf("nothing had happened yet: %q", told)
	}
}

func TestDeletionWaitsForUsersData(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "")
	before := template.DeepCopy()
	template.Spec.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}}}
	check(t, p.client.Patch(t.Context(), template, client.MergeFrom(before)))
	// Whether there is users' data is a question about every namespace.
	p.giveEverywhere(deployer)
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "precious"}})
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.delete()
	obj := p.until("blocked", is(modulesv1.DeletionBlockedCondition, metav1.ConditionTrue, modulesv1.DeletionBlockedReason))
	status := obj.Status.Deletion
	if status == nil || status.Mode != modulesv1.DeletionBlock || len(status.BlockedBy) != 1 ||
		!slices.Contains(status.BlockedBy[0].Examples, p.namespace+"/precious") {
		t.Errorf("deletion %+v", status)
	}
	if obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("generation %d was seen, of %d", obj.Status.ObservedGeneration, obj.Generation)
	}
	p.wantWarned(modulesv1.DeletionBlockedReason)
	p.wantVersion("settings", "1.0.0")
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	})
	p.gone()
	p.wantVersion("settings", "1.0.0")
	p.wantTold(modulesv1.OrphanedReason)
}

func TestDeletionGoesOnWhenUsersDataIsGone(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "")
	before := template.DeepCopy()
	template.Spec.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}}}
	check(t, p.client.Patch(t.Context(), template, client.MergeFrom(before)))
	p.giveEverywhere(deployer)
	data := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "precious"},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}},
		}}},
	}
	p.create(data)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		// Nothing but the watch can tell in time.
		spec.RetryInterval = &metav1.Duration{Duration: time.Hour}
	})
	p.until("installed", installed("1.0.0"))
	p.delete()
	p.until("blocked", is(modulesv1.DeletionBlockedCondition, metav1.ConditionTrue, modulesv1.DeletionBlockedReason))
	check(t, p.client.Delete(t.Context(), data))
	p.gone()
	p.wantVersion("settings", "")
}

func (p *plane) delete() {
	p.t.Helper()
	check(p.t, p.client.Delete(p.t.Context(), p.get()))
}

// gone waits until neither the installation nor its inventory is left.
func (p *plane) gone() {
	p.t.Helper()
	key := client.ObjectKey{Namespace: p.namespace, Name: "foo"}
	testenv.Eventually(p.t, "the installation goes", func(ctx context.Context) (bool, string) {
		obj := &modulesv1.ModuleInstallation{}
		err := p.client.Get(ctx, key, obj)
		return apierrors.IsNotFound(err), summary(obj)
	})
	if err := p.client.Get(p.t.Context(), key, &modulesv1.Inventory{}); !apierrors.IsNotFound(err) {
		p.t.Errorf("the inventory is left: %v", err)
	}
}
