package installation

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/status"
)

// Done implements kernel.Doer: what the engine did.
func (*installations) Done(obj *modulesv1.ModuleInstallation, r round) []event.Event {
	about := event.About(obj, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind))
	revision := ""
	if r.inventory != nil {
		revision = revisionOf(r.inventory.Data.Current)
	}
	var events []event.Event
	for _, note := range r.outcome.Notes {
		tell := event.Happened
		if note.Warning {
			tell = event.Warned
		}
		events = append(events, tell(about, note.Reason, note.Message, revision))
	}
	return events
}

// Events implements kernel.Kind: what was chosen, and what is in the way, each when it is new.
func (*installations) Events(before, after *modulesv1.ModuleInstallation, r round, err error) []event.Event {
	about := event.About(after, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind))
	var events []event.Event
	if chosen := after.Status.Desired; chosen != nil && r.chosen && !objects.SameRelease(before.Status.Desired, chosen) {
		events = append(events, event.Happened(about, modulesv1.ReleaseChosenReason,
			describe(chosen)+" was chosen by "+r.decision.SelectedBy.String(), revisionOf(chosen)))
	}
	// Of a deletion, the error tells.
	lost := conditions.Get(after, modulesv1.InventoryLostCondition)
	if lost != nil && after.DeletionTimestamp.IsZero() && !conditions.IsTrue(before, modulesv1.InventoryLostCondition) {
		events = append(events, event.Warned(about, lost.Reason, lost.Message, ""))
	}
	if pending := after.Status.Pending; pending != nil && isNews(before.Status.Pending, pending) && !toldElsewhere(after) {
		tell := event.Warned
		if slices.Contains(expected(), pending.Reason) {
			tell = event.Happened
		}
		events = append(events, tell(about, pending.Reason, pending.Message, revisionOf(after.Status.Desired)))
	}
	if text := unused(r.outcome.Unused); text != "" && strings.Contains(conditions.GetMessage(after, modulesv1.AppliedCondition), text) &&
		!strings.Contains(conditions.GetMessage(before, modulesv1.AppliedCondition), text) {
		events = append(events, event.Warned(about, modulesv1.UnusedVariablesReason, "N"+text[len("; n"):], revisionOf(after.Status.Current)))
	}
	if contested := conditions.Get(after, modulesv1.ContestedCondition); contested != nil && !conditions.IsTrue(before, modulesv1.ContestedCondition) {
		events = append(events, event.Warned(about, contested.Reason, contested.Message, revisionOf(after.Status.Current)))
	}
	// That a removal goes on is nothing that happened; which objects it waits for changes all the time.
	if err != nil && !status.SaysTheSame(before, after) && reasonOf(err) != modulesv1.ProgressingReason {
		tell := event.Failed
		// Users' data that is in the way of a deletion needs somebody's attention: it does not go by itself.
		if failure.Of(err).Disposition == failure.Waits && reasonOf(err) != modulesv1.DeletionBlockedReason && reasonOf(err) != modulesv1.DependentsReason {
			tell = event.Waiting
		}
		events = append(events, tell(about, reasonOf(err), err, revisionOf(after.Status.Desired)))
	}
	return events
}

// expected are the reasons to wait that the spec itself asks for, or that pass by themselves.
func expected() []string {
	return []string{
		modulesv1.AwaitingApprovalReason, modulesv1.UpgradesNeverReason, modulesv1.PausedReason,
		modulesv1.DependencyNotReadyReason,
	}
}

// toldElsewhere says that something is installed, and that what it waits for is wrong in the catalogue. The Module or the
// template tells that once; all that follow it would say the same, and can do nothing about it.
func toldElsewhere(obj *modulesv1.ModuleInstallation) bool {
	if obj.Status.Current == nil || obj.Status.Pending == nil {
		return false
	}
	switch obj.Status.Pending.Reason {
	case modulesv1.ChannelTargetMissingReason, modulesv1.ChannelNotFoundReason, modulesv1.ChannelConflictReason, modulesv1.ReleaseNotReadyReason:
		return true
	default:
		return false
	}
}

// isNews says that a release waits for something else than before. That it waits for its artifact is no news.
func isNews(before, after *modulesv1.Pending) bool {
	if after.Reason == modulesv1.ArtifactNotReadyReason {
		return false
	}
	if before == nil || before.Reason != after.Reason || before.Version != after.Version || before.Template != after.Template {
		return true
	}
	if before.Plan == nil || after.Plan == nil {
		return before.Plan != after.Plan
	}
	return before.Plan.Digest != after.Plan.Digest
}

func revisionOf(release *modulesv1.Release) string {
	if release == nil {
		return ""
	}
	return release.Revision
}
