package installation

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/wakes"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// Dismantle implements kernel.Dismantler: it removes what was installed, or lets go of it. It fails closed: whatever is
// not known keeps the object.
func (k *installations) Dismantle(ctx context.Context, obj *modulesv1.ModuleInstallation) (round, error) {
	var r round
	// Letting go of an installation that has a record would leave all it installed.
	inventory, _, lost, err := k.load(ctx, obj)
	if err != nil {
		return r, err
	}
	r.looked, r.lost = true, lost
	defer k.need(obj, &r)
	if inventory == nil {
		r.outcome.Notes, err = withoutRecord(obj, lost)
		return r, err
	}
	r.inventory = inventory
	switch {
	case obj.Undecodable != "":
		return r, failure.Stall(modulesv1.DeletionFailedReason, errors.New(obj.Undecodable))
	case obj.Spec.Suspend:
		return r, failure.Stall(modulesv1.DeletionFailedReason, errors.New(
			"the installation is suspended, and what it installed is still there; take spec.suspend back"))
	}
	identity, err := k.identity(ctx, obj)
	if err != nil && reasonOf(err) != modulesv1.ServiceAccountNotFoundReason {
		return r, err
	}
	// An account that is gone keeps nothing from going: what it may not remove any more is let go of.
	r.identity = identity
	if err := k.awaitDependents(ctx, obj, inventory); err != nil {
		return r, err
	}
	outcome, err := k.options.Engine.Reconcile(ctx, k.installation(obj, identity))
	r.outcome, r.acted = outcome, true
	if err == nil || outcome.Inventory != nil {
		r.inventory = outcome.Inventory
	}
	r.awaited = blockers(r, inventory)
	switch {
	case err != nil:
		return r, err
	case outcome.Done:
		return r, nil
	default:
		return r, undone(outcome)
	}
}

// undone says why a deletion that met no error is not over.
func undone(outcome engine.Outcome) error {
	what := "objects are being removed"
	if len(outcome.Waiting) > 0 {
		what = "waiting for " + named(outcome.Waiting) + " to go"
	}
	return failure.Wait(modulesv1.ProgressingReason, outcome.Again, errors.New(what))
}

// blockMessage names what blocks, with some examples.
func blockMessage(r round) string {
	var lines []string
	for _, blocker := range r.outcome.Deletion.BlockedBy {
		line := qualified(blocker.Kind, blocker.Group)
		if len(blocker.Examples) > 0 {
			line += " " + strings.Join(blocker.Examples, ", ")
		}
		if int(blocker.Count) > len(blocker.Examples) {
			line += " and others"
		}
		lines = append(lines, line)
	}
	for _, resource := range r.outcome.Deletion.Unknown {
		lines = append(lines, qualified(resource.Kind, resource.Group)+": "+resource.Message)
	}
	return printable.Cut(strings.Join(lines, "; "), maxMessage)
}

// qualified is a kind with its group, as kubectl takes it.
func qualified(kind, group string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

// blockers are the kinds whose objects have to go before the installation can.
func blockers(r round, inventory *modulesv1.Inventory) []wakes.Awaited {
	recorded := inventory.Data.Deletion
	if recorded == nil {
		return nil
	}
	var waiting []wakes.Awaited
	for _, blocker := range r.outcome.Deletion.BlockedBy {
		for _, kind := range recorded.ManagedResources {
			if kind.Group == blocker.Group && kind.Kind == blocker.Kind {
				waiting = append(waiting, wakes.Awaited{
					Identity: r.identity, GVK: schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
				})
			}
		}
	}
	return waiting
}

// reportDeletion says what a deletion waits for.
func reportDeletion(to *modulesv1.ModuleInstallationStatus, r round) {
	if !r.acted {
		return
	}
	to.Deletion = r.outcome.Deletion.DeepCopy()
}

// deletionFacts are the conditions of an object that is being deleted. The others speak of what is no longer kept.
func deletionFacts(obj *modulesv1.ModuleInstallation, r round, err error) []status.Fact {
	facts := forgotten(obj, r)
	if err != nil && reasonOf(err) == modulesv1.DependentsReason {
		return append(facts, status.True(modulesv1.DeletionBlockedCondition, modulesv1.DependentsReason, err.Error()))
	}
	if len(r.outcome.Deletion.BlockedBy) == 0 && len(r.outcome.Deletion.Unknown) == 0 {
		return facts
	}
	return append(facts, status.True(modulesv1.DeletionBlockedCondition, reasonOf(err), blockMessage(r)))
}
