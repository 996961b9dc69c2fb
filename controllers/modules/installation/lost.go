package installation

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/status"
)

// load reads the record of this very object; nil is none. Lost says that there was one and that nothing is left of it: it
// was deleted by force. A record of another object of the same name comes as other.
func (k *installations) load(ctx context.Context, obj *modulesv1.ModuleInstallation) (record, other *modulesv1.Inventory, lost bool, err error) {
	record, err = k.options.Records.Load(ctx, obj.Namespace, obj.Name)
	if err != nil || objects.IsRecordOf(obj, record) {
		return record, nil, false, err
	}
	if record != nil || obj.Status.Inventory == nil {
		return nil, record, false, nil
	}
	if lost, err = k.names(ctx, obj); lost {
		// What the engine remembers of the objects was on that record.
		k.options.Engine.Forget(client.ObjectKeyFromObject(obj).String())
	}
	return nil, nil, lost, err
}

// names says whether status names an Inventory, past every cache. One that is no longer needed is not named any more when
// it goes.
func (k *installations) names(ctx context.Context, obj *modulesv1.ModuleInstallation) (bool, error) {
	live := &modulesv1.ModuleInstallation{}
	if err := k.options.Reader.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == obj.UID && live.Status.Inventory != nil, nil
}

// withoutRecord ends the deletion of an installation that has no record. Where there was one, only the user can say that
// what was installed may stay: nobody else knows what that is.
func withoutRecord(obj *modulesv1.ModuleInstallation, lost bool) ([]engine.Note, error) {
	switch {
	case !lost:
		return nil, nil
	case obj.Spec.GetDeletionMode() == modulesv1.DeletionOrphan:
		return []engine.Note{{Reason: modulesv1.OrphanedReason, Warning: true, Message: "let go of what is installed without its Inventory; " + labelled(obj)}}, nil
	default:
		return nil, failure.Stall(modulesv1.InventoryLostReason, fmt.Errorf(
			"the Inventory is gone, so that nothing is known to be removed; %s; remove those, then set deletion.mode to Orphan", labelled(obj)))
	}
}

// labelled says how to find the objects of an installation.
func labelled(obj *modulesv1.ModuleInstallation) string {
	return fmt.Sprintf("its objects carry the label %s=%s", engine.Label, engine.InstallationID(obj.Name, obj.Namespace))
}

// forgotten says that what was installed is not on record any more, until another release or config is installed in full:
// what the record had left of older ones is not known any more then, which the event has told.
func forgotten(obj *modulesv1.ModuleInstallation, r round) []status.Fact {
	complete := r.inventory != nil && r.inventory.Data.Attempt == nil && r.inventory.Data.Current != nil
	if !r.lost && (complete || !conditions.IsTrue(obj, modulesv1.InventoryLostCondition)) {
		return nil
	}
	message := "The Inventory was deleted; all objects of the release are applied again, and others that were left are not known; " + labelled(obj)
	if !obj.DeletionTimestamp.IsZero() {
		message = "The Inventory was deleted, so that nothing is known to be removed; " + labelled(obj)
	}
	return []status.Fact{status.True(modulesv1.InventoryLostCondition, modulesv1.InventoryLostReason, message)}
}
