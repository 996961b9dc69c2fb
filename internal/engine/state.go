package engine

import (
	"cmp"
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// action is one thing to do. It says whether it is worth looking again right away.
type action struct {
	name string
	do   func(context.Context) (more bool, err error)
}

// choose determines the state, and the one action that follows from it; without any the round ends.
func (r *round) choose(ctx context.Context) action {
	if r.in.Deleting {
		return r.chooseDeletion()
	}
	if r.in.Spec.GetManagement() == modulesv1.ManagementPaused {
		return action{"hold", r.hold}
	}
	switch {
	case r.aim == nil && r.record == nil:
		return action{}
	case r.aim != nil && !r.under(r.aim) && r.held == nil:
		return action{"claim", r.claim}
	case r.record == nil:
		return action{}
	}
	attempt := r.record.Data.Attempt
	switch {
	case attempt == nil || attempt.Stage != modulesv1.StageApplying:
		return r.chooseKeeping(ctx)
	case r.aim != nil && r.under(r.aim):
		return action{"apply", r.apply}
	}
	// What is there is between two releases, and neither can be got.
	return action{"hold", r.hold}
}

// chooseKeeping is for a release that is applied in full: it is kept as it is, and its attempt brought to its end.
func (r *round) chooseKeeping(ctx context.Context) action {
	if kept := r.keepable(ctx); kept == nil {
		return action{"hold", r.hold}
	}
	switch {
	case !r.did["heal"]:
		return action{"heal", r.heal}
	case !r.did["verify"] && r.verifiable():
		return action{"verify", r.verify}
	case !r.did["wait"]:
		return action{"wait", r.wait}
	}
	attempt := r.record.Data.Attempt
	mine := r.aim != nil && r.under(r.aim)
	switch {
	case attempt == nil && mine && !r.did["relabel"]:
		return action{"relabel", r.relabel}
	case attempt == nil && mine && r.held == nil && r.out.Healthy && (r.prunable() || r.wantsDefaultConfig() && r.record.Data.DefaultConfigCreated == nil):
		// The spec or the template has changed its mind about what goes, or about the default configuration.
		return action{"claim", r.claim}
	case attempt == nil || !mine || !r.out.Healthy:
		return action{}
	case !r.did["default-config"] && r.lacksDefaultConfig():
		return action{"default-config", r.defaultConfig}
	case r.prunable():
		return action{"prune", r.prune}
	}
	return action{"finish", r.finish}
}

// takeAim finds what the round works for: the target, or without one what is on record. A target that cannot be
// rendered holds, so that what is on record is kept all the same; without a record there is nothing to be kept.
func (r *round) takeAim(ctx context.Context) error {
	target := cmp.Or(r.in.Target, r.in.Current)
	if target == nil {
		return nil
	}
	found, err := r.renders.aimAt(ctx, target)
	switch {
	case err == nil:
		r.aim = found
	case r.record == nil:
		return err
	case errors.Is(err, errBusy):
		// Nothing is wrong with what is installed, and it is looked at before long.
		r.out.again(goOn)
	default:
		r.held = err
		r.aim = r.current(ctx, r.under) // Its attempt can go on.
	}
	return nil
}

// current is the release on record, if that is what it is to be: under way or recorded.
func (r *round) current(ctx context.Context, is func(*aim) bool) *aim {
	if r.in.Target == nil || r.in.Current == nil {
		return nil
	}
	if found, err := r.renders.aimAt(ctx, r.in.Current); err == nil && is(found) {
		return found
	}
	return nil
}

// keepable is the release on record, if there is a way to get its objects; found once a round.
func (r *round) keepable(ctx context.Context) *aim {
	switch {
	case r.kept != nil:
	case r.aim != nil && r.recorded(r.aim):
		r.kept = r.aim
	default:
		r.kept = r.current(ctx, r.recorded)
	}
	return r.kept
}

// under says that the aim is what is being attempted, or what is installed if nothing is.
func (r *round) under(a *aim) bool {
	if r.record == nil {
		return false
	}
	if attempt := r.record.Data.Attempt; attempt != nil {
		return attempt.RenderDigest == a.digest && sameRelease(attempt.Release, a.target.Release)
	}
	return r.recorded(a)
}

// recorded says that the aim is what was applied last, in full.
func (r *round) recorded(a *aim) bool {
	current := r.record.Data.Current
	return current != nil && r.record.Data.RenderDigest == a.digest && sameRelease(*current, a.target.Release)
}

// sameRelease says that two are the same release; how it was chosen makes no difference.
func sameRelease(a, b modulesv1.Release) bool {
	return a.Version == b.Version && a.Digest == b.Digest && a.Path == b.Path
}
