package records

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// errNoInstallation says that the object which an Inventory was kept for is gone: nobody would remove another one.
var errNoInstallation = errors.New("the inventory was deleted, and so was its installation")

// OnInventory wakes the installation whose Inventory has gone. The finalizer keeps it for as long as it is needed, so that
// somebody has removed it by force. The objects are metadata.
func (i *Inventories) OnInventory() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		key := client.ObjectKeyFromObject(e.Object)
		if i.miss(key, e.Object.GetUID()) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}}
}

// miss notes that a record is gone which is in memory, so that the next look finds out.
func (i *Inventories) miss(key types.NamespacedName, uid types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.known[key]
	if known == nil || known.UID != uid {
		return false
	}
	i.vanished[key] = true
	return true
}

// reload stores again what is in memory; there is none where the installation is gone too.
func (i *Inventories) reload(ctx context.Context, inventory *modulesv1.Inventory) (*modulesv1.Inventory, error) {
	err := i.restore(ctx, inventory)
	if errors.Is(err, errNoInstallation) {
		return nil, nil
	}
	return inventory, err
}

// restore stores a record that somebody has deleted by force. Nothing else knows what is installed, and this process has
// written all that was in it. The installation is looked up past every cache.
func (i *Inventories) restore(ctx context.Context, inventory *modulesv1.Inventory) error {
	key := client.ObjectKeyFromObject(inventory)
	installation := &metav1.PartialObjectMetadata{}
	installation.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind))
	err := i.reader.Get(ctx, key, installation)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(installation.UID) != inventory.Data.InstallationUID:
		i.Forget(key)
		return fmt.Errorf("update inventory %s: %w", key, errNoInstallation)
	case err != nil:
		return fmt.Errorf("find out whether inventory %s is needed: %w", key, err)
	}
	inventory.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if err := i.Create(ctx, inventory); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.restored[key] = true
	return nil
}

// Restored says whether the record was made again since it was asked last.
func (i *Inventories) Restored(key types.NamespacedName) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	restored := i.restored[key]
	delete(i.restored, key)
	return restored
}

// unname takes the record out of the installation's status before it goes: whoever finds it gone after a crash knows then
// that it was not lost. The installation may be gone already, or be another one by now.
func (i *Inventories) unname(ctx context.Context, inventory *modulesv1.Inventory) error {
	installation := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: inventory.Namespace, Name: inventory.Name}}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"inventory":null}}`, inventory.Data.InstallationUID)
	err := i.client.Status().Patch(ctx, installation, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(i.fieldOwner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
