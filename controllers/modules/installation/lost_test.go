package installation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// loseInventory deletes the Inventory by force.
func (p *plane) loseInventory() *modulesv1.Inventory {
	p.t.Helper()
	inventory := p.inventory()
	before := inventory.DeepCopy()
	inventory.Finalizers = nil
	check(p.t, p.client.Patch(p.t.Context(), inventory, client.MergeFrom(before)))
	check(p.t, p.client.Delete(p.t.Context(), inventory))
	return before
}

// TestInventoryThatSomebodyDeletesIsLost: whether or not the process has been running since it was written.
func TestInventoryThatSomebodyDeletesIsLost(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	before := p.loseInventory()
	testenv.Eventually(t, "there is another one", func(ctx context.Context) (bool, string) {
		found := &modulesv1.Inventory{}
		err := p.client.Get(ctx, client.ObjectKeyFromObject(before), found)
		return err == nil && found.UID != before.UID && len(found.Data.Members) == 1 && found.Data.Current != nil, fmt.Sprint(err, found.Data)
	})
	p.wantWarned(modulesv1.InventoryLostReason)
	p.delete()
	p.gone()
	p.wantVersion("settings", "")
}

// restarted is a plane with release 1.0.0 installed, in a process that has just begun: it remembers nothing of it. The
// installation is suspended.
func restarted(t *testing.T) *plane {
	t.Helper()
	var options installation.Options
	p := newPlane(t, func(o *installation.Options) { options = *o })
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = true })
	obj := p.until("suspended", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.ObservedGeneration == obj.Generation })
	key := client.ObjectKeyFromObject(obj)
	options.Engine.Forget(key.String())
	options.Records.Forget(key)
	return p
}

func TestLostInventoryIsTold(t *testing.T) {
	t.Parallel()
	p := restarted(t)
	lost := p.loseInventory()
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = false })
	p.until("installed again", installed("1.0.0"))
	p.wantWarned(modulesv1.InventoryLostReason)
	if found := p.inventory(); found.UID == lost.UID || len(found.Data.Members) != 1 {
		t.Errorf("inventory %+v", found.Data)
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Upgrade = &modulesv1.UpgradePolicy{} })
	obj := p.until("looked at once more", func(obj *modulesv1.ModuleInstallation) bool {
		return installed("1.0.0")(obj) && !conditions.Has(obj, modulesv1.InventoryLostCondition)
	})
	if obj.Status.Inventory == nil {
		t.Errorf("%s", summary(obj))
	}
}

// TestFinishedRemovalIsNoLoss: a process that is killed between the Inventory and the finalizer is followed by one that
// finds no Inventory.
func TestFinishedRemovalIsNoLoss(t *testing.T) {
	t.Parallel()
	var options installation.Options
	p := newPlane(t, func(o *installation.Options) { options = *o })
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = true })
	p.until("suspended", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.ObservedGeneration == obj.Generation })
	check(t, options.Records.Delete(t.Context(), p.inventory()))
	options.Engine.Forget(p.namespace + "/foo")
	p.delete()
	p.gone()
	if told := p.events.of(modulesv1.InventoryLostReason); len(told) > 0 {
		t.Errorf("nothing is lost: %q", told)
	}
}

// TestDeletionWithoutInventoryIsNotSilent: nobody knows any more what would have to be removed.
func TestDeletionWithoutInventoryIsNotSilent(t *testing.T) {
	t.Parallel()
	p := restarted(t)
	p.loseInventory()
	p.delete()
	blocked := is("Stalled", metav1.ConditionTrue, modulesv1.InventoryLostReason)
	p.until("it says so", blocked)
	p.wantWarned(modulesv1.InventoryLostReason)
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = false })
	obj := p.until("it goes on saying so", blocked)
	lost := conditions.Get(obj, modulesv1.InventoryLostCondition)
	if lost == nil || !strings.Contains(lost.Message, engine.InstallationID(obj.Name, obj.Namespace)) || obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("%s", summary(obj))
	}
	p.wantVersion("settings", "1.0.0")

	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	})
	testenv.Eventually(t, "it is let go", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), summary(obj)
	})
	p.wantVersion("settings", "1.0.0")
	p.wantWarned(modulesv1.OrphanedReason)
}
