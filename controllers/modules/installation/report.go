package installation

import (
	"cmp"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
)

// What status has room for.
const (
	maxMessage = 1024
	maxDetail  = 512
	maxTrace   = 32
)

// Report implements kernel.Kind: status says what was chosen and what is on record. A round that could not read the
// record leaves what status said.
func (k *installations) Report(obj *modulesv1.ModuleInstallation, r round, err error) kernel.Report {
	if !r.looked {
		return kernel.Report{Facts: k.Table().Stated(obj)}
	}
	if !r.lost || r.inventory != nil {
		reportRecord(&obj.Status, r.inventory)
	}
	if r.acted || r.inventory == nil {
		obj.Status.Problems = problems(r, err)
	}
	if !obj.DeletionTimestamp.IsZero() {
		obj.Status.Pending, obj.Status.AvailableUpgrades = nil, nil
		reportDeletion(&obj.Status, r)
		return kernel.Report{Facts: deletionFacts(obj, r, err), Again: r.outcome.Again}
	}
	if r.chosen {
		reportChoice(obj, r)
	}
	return kernel.Report{Facts: facts(obj, r, err), Message: success(obj, r), Progress: progress(obj, r), Again: k.again(obj, r, err)}
}

// reportRecord says what is installed.
func reportRecord(to *modulesv1.ModuleInstallationStatus, inventory *modulesv1.Inventory) {
	if inventory == nil {
		to.Current, to.Attempted, to.Previous, to.History, to.Inventory = nil, nil, nil, nil, nil
		return
	}
	data := &inventory.Data
	to.Current, to.Attempted, to.Previous, to.History = data.Current.DeepCopy(), nil, data.Previous.DeepCopy(), slices.Clone(data.History)
	if data.Attempt != nil {
		to.Attempted = data.Attempt.Release.DeepCopy()
	}
	to.Inventory = &modulesv1.InventoryReference{
		Name: inventory.Name, LetGo: data.LetGo, Members: int32(len(data.Members)), //nolint:gosec // An inventory has 7,500 members at most.
		Contents: contents(data.Members),
	}
}

// reportChoice says which release was chosen, and how.
func reportChoice(obj *modulesv1.ModuleInstallation, r round) {
	decision, to := r.decision, &obj.Status
	resolution := &modulesv1.Resolution{
		// A module that no catalogue has was looked for all the same.
		Module: cmp.Or(decision.Module, obj.Spec.Module.Name), Namespace: decision.Namespace, SelectedBy: decision.SelectedBy.String(),
	}
	if decision.Catalog != modulesv1.CatalogAuto {
		resolution.Catalog = decision.Catalog
	}
	for _, rule := range decision.Trace[:min(len(decision.Trace), maxTrace)] {
		resolution.Trace = append(resolution.Trace, modulesv1.TraceStep{
			Rule: rule.Name, Kept: int32(rule.Kept), //nolint:gosec // Templates of a namespace are far fewer.
			Detail: printable.Cut(rule.Note, maxDetail),
		})
	}
	to.Resolution, to.Desired, to.Pending, to.AvailableUpgrades = resolution, r.desired.DeepCopy(), r.pending, decision.Upgrades
}

// success is the message of Ready when nothing is in the way of what is installed.
func success(obj *modulesv1.ModuleInstallation, r round) string {
	if r.inventory == nil || r.inventory.Data.Current == nil {
		return "Nothing is installed"
	}
	message := describe(r.inventory.Data.Current) + " is installed"
	switch {
	case r.pending != nil:
		message += "; held: " + r.pending.Message
	case obj.Spec.GetManagement() == modulesv1.ManagementPaused:
		message += "; its objects are left alone while management is Paused"
	}
	return message
}

// progress says what is still going on; empty when nothing is.
func progress(obj *modulesv1.ModuleInstallation, r round) string {
	switch {
	case r.pending != nil && r.pending.Reason == modulesv1.ArtifactNotReadyReason:
		return describe(r.desired) + " waits for its artifact: " + r.pending.Message
	case r.inventory == nil:
		if obj.Spec.GetManagement() == modulesv1.ManagementPaused {
			return "Nothing is installed while management is Paused"
		}
		return ""
	case obj.Spec.GetManagement() == modulesv1.ManagementPaused, !r.acted:
		return ""
	case r.halted:
		return describe(&r.inventory.Data.Attempt.Release) + " was begun, and goes on when its plan with the config of now is approved"
	case r.inventory.Data.Attempt != nil:
		return describe(&r.inventory.Data.Attempt.Release) + " is being installed" + waitingFor(r)
	case !r.outcome.Healthy && r.inventory.Data.Current != nil:
		return describe(r.inventory.Data.Current) + " is installed, and not healthy yet" + waitingFor(r)
	default:
		return ""
	}
}

// maxNamed is how many objects a message names.
const maxNamed = 3

// waitingFor names objects that are waited for. What they say themselves would change the message all the time.
func waitingFor(r round) string {
	if len(r.outcome.Waiting) == 0 {
		return ""
	}
	return "; waiting for " + named(r.outcome.Waiting)
}
