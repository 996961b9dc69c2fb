package installation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// facts are the conditions beside Ready. What a round did not come to is stated as it was before.
func facts(obj *modulesv1.ModuleInstallation, r round, err error) []status.Fact {
	var all []status.Fact
	if r.chosen {
		all = append([]status.Fact{resolved(r), upToDate(r, err)}, deprecated(r)...)
	} else {
		all = append(status.Kept(obj, modulesv1.ResolvedCondition, modulesv1.DeprecatedCondition), remembered(obj, r, modulesv1.UpToDateCondition)...)
	}
	all = append(all, forgotten(obj, r)...)
	if !r.chosen && !r.acted {
		all = append(all, remembered(obj, r, modulesv1.AppliedCondition, modulesv1.HealthyCondition)...)
		return append(all, status.Kept(obj, modulesv1.ContestedCondition)...)
	}
	return slices.Concat(all, applied(obj, r, err), healthy(obj, r, err), contested(r))
}

func resolved(r round) status.Fact {
	if hold := r.decision.Hold; hold != nil && hold.Candidate == nil {
		return status.False(modulesv1.ResolvedCondition, hold.Reason, hold.Message)
	}
	return yes(modulesv1.ResolvedCondition, describe(r.desired)+" is selected by "+r.decision.SelectedBy.String())
}

func upToDate(r round, err error) status.Fact {
	switch {
	case r.pending != nil:
		return status.False(modulesv1.UpToDateCondition, r.pending.Reason, r.pending.Message)
	case r.inventory != nil && r.inventory.Data.Attempt == nil && !r.decision.Changed:
		return yes(modulesv1.UpToDateCondition, describe(r.desired)+" is installed")
	case err != nil && stageOf(err) != engine.StageHealth:
		return status.False(modulesv1.UpToDateCondition, reasonOf(err), err.Error())
	default:
		return status.False(modulesv1.UpToDateCondition, modulesv1.ProgressingReason, describe(r.desired)+" is being installed")
	}
}

func applied(obj *modulesv1.ModuleInstallation, r round, err error) []status.Fact {
	const condition = modulesv1.AppliedCondition
	if err != nil && r.failedBeforeHealth(err) {
		return []status.Fact{status.False(condition, reasonOf(err), err.Error())}
	}
	if r.inventory == nil {
		return nil
	}
	data := &r.inventory.Data
	switch {
	case obj.Spec.GetManagement() == modulesv1.ManagementPaused:
		return []status.Fact{status.Unknown(condition, modulesv1.PausedReason, "Objects are left alone while management is Paused")}
	case data.Attempt != nil && data.Attempt.Stage == modulesv1.StageApplying:
		return []status.Fact{status.Unknown(condition, modulesv1.ProgressingReason, describe(&data.Attempt.Release)+" is being applied")}
	case data.Attempt != nil:
		return []status.Fact{yes(condition, describe(&data.Attempt.Release)+" is applied")}
	case data.Current != nil:
		return []status.Fact{yes(condition, describe(data.Current)+" is applied"+unwatched(r.outcome.Unwatched)+unused(r.outcome.Unused)+uncounted(r.outcome.Uncounted))}
	default:
		return nil
	}
}

// uncounted says which users' data a deletion would not know of.
func uncounted(resources []string) string {
	if len(resources) == 0 {
		return ""
	}
	return "; users' data cannot be counted when it is deleted: the right is missing to list " + printable.List(resources, maxNamed)
}

// unwatched says which changes are seen late, and why.
func unwatched(kinds []engine.Problem) string {
	if len(kinds) == 0 {
		return ""
	}
	return fmt.Sprintf("; changes of %s are seen late: %s", kinds[0].Ref.GVK.Kind, kinds[0].Message)
}

// unused names variables of the spec that the release does not know: most often one of the two is misspelt.
func unused(variables []string) string {
	if len(variables) == 0 {
		return ""
	}
	return "; nothing uses the variables of spec.config.substitute: " + printable.List(variables, maxNamed)
}

// failedBeforeHealth says that the round could not bring the objects to where they should be, or find that out.
func (r round) failedBeforeHealth(err error) bool {
	if err == nil || r.unread != nil && errors.Is(err, r.unread) || r.decision.Hold != nil && r.decision.Hold.Stalled && stageOf(err) == "" && failure.Of(err).Disposition == failure.Stalls {
		return false
	}
	switch stageOf(err) {
	case engine.StageHealth, engine.StagePrune, engine.StageDepend:
		return false
	default:
		return true
	}
}

func healthy(obj *modulesv1.ModuleInstallation, r round, err error) []status.Fact {
	const condition = modulesv1.HealthyCondition
	switch {
	case r.inventory == nil:
		return nil
	case err != nil && stageOf(err) == engine.StageHealth:
		return []status.Fact{status.False(condition, reasonOf(err), err.Error())}
	case r.outcome.Healthy && r.running() != nil:
		return []status.Fact{yes(condition, describe(r.running())+" is healthy")}
	case len(r.outcome.Waiting) > 0:
		return []status.Fact{status.Unknown(condition, modulesv1.ProgressingReason, "Waiting for "+named(r.outcome.Waiting))}
	case err != nil || !r.acted:
		return remembered(obj, r, condition)
	default:
		return []status.Fact{status.Unknown(condition, modulesv1.ProgressingReason, "Not known yet")}
	}
}

// remembered are the conditions as they were found out before, if that was for the present spec, and nothing was begun since.
func remembered(obj *modulesv1.ModuleInstallation, r round, conditions ...string) []status.Fact {
	facts := status.Kept(obj, conditions...)
	for i := range facts {
		if facts[i].Observed != obj.Generation || r.inventory != nil && r.inventory.Data.Attempt != nil {
			facts[i] = status.Unknown(facts[i].Type, modulesv1.ProgressingReason, "Not known yet")
		}
	}
	return facts
}

// running is the release whose objects are there, as far as they are.
func (r round) running() *modulesv1.Release {
	if attempt := r.inventory.Data.Attempt; attempt != nil {
		return &attempt.Release
	}
	return r.inventory.Data.Current
}

func deprecated(r round) []status.Fact {
	var reason string
	var messages []string
	for _, warning := range r.decision.Warnings {
		if warning.Reason == modulesv1.ReleaseDeprecatedReason || warning.Reason == modulesv1.ReleaseWithdrawnReason {
			reason = warning.Reason
			messages = append(messages, warning.Message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return []status.Fact{status.True(modulesv1.DeprecatedCondition, reason, strings.Join(messages, "; "))}
}

func contested(r round) []status.Fact {
	if len(r.outcome.Contested) == 0 {
		return nil
	}
	lines := make([]string, 0, maxNamed)
	for _, problem := range r.outcome.Contested[:min(len(r.outcome.Contested), maxNamed)] {
		lines = append(lines, named([]engine.Problem{problem})+": "+problem.Message)
	}
	return []status.Fact{
		status.True(modulesv1.ContestedCondition, modulesv1.DriftContestedReason, printable.Cut(strings.Join(lines, "; "), maxMessage)),
	}
}

// named names the first few objects.
func named(problems []engine.Problem) string {
	names := make([]string, 0, maxNamed)
	for _, problem := range problems[:min(len(problems), maxNamed)] {
		name := problem.Ref.Name
		if problem.Ref.Namespace != "" {
			name = problem.Ref.Namespace + "/" + name
		}
		names = append(names, problem.Ref.GVK.Kind+" "+name)
	}
	text := strings.Join(names, ", ")
	if len(problems) > maxNamed {
		text += " and others"
	}
	return text
}

// stageOf is the part of the engine's work that an error comes from; empty for none of it.
func stageOf(err error) failure.Stage {
	if staged, ok := errors.AsType[*failure.StageError](err); ok {
		return staged.Stage
	}
	return ""
}

func reasonOf(err error) string {
	return cmp.Or(failure.Of(err).Reason, modulesv1.FailedReason)
}

func yes(condition, message string) status.Fact {
	return status.True(condition, modulesv1.SucceededReason, message)
}

// describe names a release in messages.
func describe(release *modulesv1.Release) string {
	if release == nil {
		return "No release"
	}
	if release.Version != "" {
		return "Release " + release.Version
	}
	return fmt.Sprintf("The release of template %s", release.Template)
}
