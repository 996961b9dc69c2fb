package engine

import (
	"context"
	"fmt"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/failure"
)

// wait judges the health of all members. It never waits itself: what is not healthy is told, and heard of by the watch.
func (r *round) wait(ctx context.Context) (bool, error) {
	failing, err := r.judge(ctx)
	if err != nil {
		return false, err
	}
	return r.out.Healthy, r.verdict(failing)
}

// verdict says whether time is up for what is not healthy. That some are failing is told at once, and watched all the same.
func (r *round) verdict(failing bool) error {
	now := r.engine.clock.Now()
	if r.out.Healthy {
		r.memory.unhealthySince = time.Time{}
		return nil
	}
	since := r.memory.unhealthySince
	if attempt := r.record.Data.Attempt; attempt != nil && attempt.AppliedAt != nil {
		since = attempt.AppliedAt.Time
	} else if since.IsZero() {
		since = now
		r.memory.unhealthySince = now
	}
	left := since.Add(r.in.Spec.GetTimeout()).Sub(now)
	if left > 0 && !failing {
		r.out.again(left)
		return nil
	}
	lines := make([]memberError, 0, len(r.out.Waiting))
	for i, problem := range r.out.Waiting {
		if left <= 0 {
			r.out.Waiting[i].Reason = modulesv1.HealthCheckFailedReason
		}
		lines = append(lines, memberError{problem.Ref, fmt.Errorf("%s: %s", describe(problem.Ref), problem.Message)})
	}
	return joined(StageHealth, modulesv1.HealthCheckFailedReason, lines)
}

// judge fills in Healthy and Waiting, and says whether a member has failed, so that waiting does not help it.
func (r *round) judge(ctx context.Context) (failing bool, err error) {
	checker, err := r.judges()
	if err != nil {
		return false, err
	}
	judging := &judging{
		sight: r.sight, client: r.client, clock: r.engine.clock, checker: checker, checked: r.memory.checked,
		retry: r.in.Spec.GetRetryInterval(), over: func(ctx context.Context) error {
			if checker.Spent() >= r.engine.options.HealthCost {
				return errLate
			}
			return r.over(ctx)
		},
	}
	var failed []memberError
	for _, one := range judging.judge(ctx, r.members()) {
		if one.err != nil {
			failed = append(failed, memberError{refOf(one.of), one.err})
			continue
		}
		r.memory.checked[keyOf(one.of)] = one.found
	}
	if err := joined(StageHealth, modulesv1.HealthCheckFailedReason, failed); err != nil {
		return false, err
	}
	return r.report(checker), nil
}

// judges is the checker for the expressions of the release on record.
func (r *round) judges() (*health.Checker, error) {
	told := r.record.Data.Health
	if r.kept != nil {
		told = r.kept.target.Health
	}
	checker, err := r.engine.library.Checker(told)
	if err != nil {
		return nil, failure.At(StageHealth, failure.Stall(modulesv1.HealthCheckFailedReason, err))
	}
	r.memory.judgeBy(fmt.Sprintf("%q", told), &r.record.Data)
	return checker, nil
}

// report tells what is not healthy. A member whose kind has no health to speak of is healthy if it is there.
func (r *round) report(checker *health.Checker) (failing bool) {
	r.out.Waiting = nil
	for m := range every(r.record.Data.Members) {
		if !wanted(m) || r.gone(m) {
			continue
		}
		if !checker.NeedsObject(kindOf(m)) {
			meta, seen := r.state(m)
			switch {
			case seen && meta == nil:
				r.out.waitFor(refOf(m), "is missing")
			case seen && meta.Deleting:
				r.out.waitFor(refOf(m), "is being deleted")
			}
			continue
		}
		last := r.memory.checked[keyOf(m)]
		if last.status == health.Current {
			continue
		}
		failing = failing || last.status == health.Failed
		r.out.waitFor(refOf(m), last.message)
		if last.status == health.Failed {
			r.out.Waiting[len(r.out.Waiting)-1].Reason = modulesv1.HealthCheckFailedReason
		}
		if _, seen := r.state(m); !seen {
			r.out.again(lookAgain)
		}
	}
	r.out.Healthy = len(r.out.Waiting) == 0
	return failing
}

// hold watches the members and tells how they are: the installation is paused, or its release cannot be got.
func (r *round) hold(ctx context.Context) (bool, error) {
	if r.record == nil {
		return false, nil
	}
	r.watch(r.record.Data.Members) //nolint:contextcheck // Watches outlive the round that asks for them.
	paused := r.in.Spec.GetManagement() == modulesv1.ManagementPaused
	for m := range every(r.record.Data.Members) {
		if meta, known := r.state(m); known && wanted(m) && r.hasDrifted(m, meta) {
			r.out.Drifted = append(r.out.Drifted, Problem{Ref: refOf(m), Reason: modulesv1.PausedReason, Message: "is not as it was applied"})
		}
	}
	failing, err := r.judge(ctx)
	if err == nil && !paused && r.held == nil {
		err = r.verdict(failing)
	}
	return false, err
}
