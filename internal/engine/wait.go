package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/failure"
)

// lookAgain is how soon members that cannot be watched are read again while they are not healthy.
const lookAgain = 10 * time.Second

// wait judges the health of all members of the release that was applied last. It never waits: what is not healthy is
// told, and looked at again when the watch says that it changed.
func (r *round) wait(ctx context.Context) (bool, error) {
	if err := r.judge(ctx); err != nil {
		return false, err
	}
	return r.out.Healthy, r.verdict()
}

// state is what the watch knows of a member.
func (r *round) state(m *modulesv1.Member) (found *watch.Meta, known bool) {
	return r.engine.parts.Watcher.State(r.key(), watched(refOf(m)))
}

// verdict says whether time is up for what is not healthy. What has failed is told at once, and watched all the same.
func (r *round) verdict() error {
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
	if left > 0 && !r.failing {
		r.again(left)
		return nil
	}
	lines := make([]memberError, 0, len(r.out.Waiting))
	for _, problem := range r.out.Waiting {
		lines = append(lines, memberError{problem.Ref, fmt.Errorf("%s: %s", describe(problem.Ref), problem.Message)})
	}
	return joined(StageHealth, modulesv1.HealthCheckFailedReason, lines)
}

// judge fills in Healthy and Waiting. A member is read only if its health needs the object, and only when the watch
// has another version of it than was judged.
func (r *round) judge(ctx context.Context) error {
	checker, err := r.judges()
	if err != nil {
		return err
	}
	var unread []*modulesv1.Member
	blind := r.blind()
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if wanted(m) && !r.gone(m) && !r.known(m, checker, blind) {
			unread = append(unread, m)
		}
	}
	spent := &health.Budget{}
	within := checker.Within(spent)
	over := func() error {
		if spent.Spent() >= r.engine.options.HealthCost {
			return errLate
		}
		return r.over(ctx)
	}
	listed, unread := r.readMany(ctx, over, unread, within)
	found := each(over, r.engine.options.Parallel, unread, func(m *modulesv1.Member) judgement {
		return r.read(ctx, m, within)
	}, func(m *modulesv1.Member, err error) judgement { return judgement{member: m, err: err} })
	var failed []memberError
	for _, one := range append(found, listed...) {
		if one.err != nil {
			failed = append(failed, memberError{refOf(one.member), one.err})
			continue
		}
		r.memory.checked[keyOf(one.member)] = one.checked
	}
	if err := joined(StageHealth, modulesv1.HealthCheckFailedReason, failed); err != nil {
		return err
	}
	r.report(checker)
	return nil
}

// judges is the checker for the expressions of the release on record.
func (r *round) judges() (*health.Checker, error) {
	target := r.in.Current
	switch {
	case r.kept != nil:
		target = r.kept.target
	case target == nil && r.in.Target != nil && r.record.Data.Current != nil &&
		sameRelease(*r.record.Data.Current, r.in.Target.Release):
		target = r.in.Target
	}
	if target == nil || len(target.Health) == 0 {
		r.judgesBy("")
		return r.engine.conventions, nil
	}
	expressions := make([]health.Expression, 0, len(target.Health))
	for _, one := range target.Health {
		expressions = append(expressions, health.Expression(one))
	}
	checker, err := r.engine.library.Checker(expressions)
	if err != nil {
		return nil, failure.At(StageHealth, failure.Stall(modulesv1.HealthCheckFailedReason, err))
	}
	r.judgesBy(fmt.Sprintf("%q", expressions))
	return checker, nil
}

// known says that what is remembered of a member's health still holds.
func (r *round) known(m *modulesv1.Member, checker *health.Checker, blind map[key]bool) bool {
	if !checker.NeedsObject(kindOf(m)) {
		return true
	}
	last, judged := r.memory.checked[keyOf(m)]
	meta, seen := r.state(m)
	switch {
	case !judged:
		return false
	case !seen && last.recalled && !blind[keyOf(m)]:
		// The watch is about to say whether it is that version still, if its kind is still there.
		_, err := r.client.Namespaced(kindOf(m))
		return err == nil
	case !seen:
		// Without a watch there is only time to go by.
		every := lookAgain
		if last.status == health.Current {
			every = r.in.Spec.GetRetryInterval()
		}
		return r.engine.clock.Now().Sub(last.at) < every
	case meta == nil:
		return last.seen == "" && !last.recalled
	}
	return meta.ResourceVersion == last.seen || meta.ResourceVersion == last.got
}

// judgement is what was found of a member.
type judgement struct {
	member  *modulesv1.Member
	checked checked
	err     error
}

// judged is the judgement of a member that was read; live is nil where it is not there.
func (r *round) judged(m *modulesv1.Member, live *unstructured.Unstructured, checker *health.Checker) judgement {
	found := checked{at: r.engine.clock.Now(), status: health.InProgress, message: "is missing"}
	if meta, seen := r.state(m); seen && meta != nil {
		found.seen = meta.ResourceVersion
	}
	if live != nil {
		found.got = live.GetResourceVersion()
		found.status, found.message = checker.Check(live)
	}
	return judgement{member: m, checked: found}
}

func (r *round) read(ctx context.Context, m *modulesv1.Member, checker *health.Checker) judgement {
	live, err := r.client.Get(ctx, withUID(refOf(m), ""))
	switch {
	case errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind), errors.Is(err, cluster.ErrScope):
		return r.judged(m, nil, checker)
	case err != nil:
		return judgement{member: m, err: err}
	}
	return r.judged(m, live, checker)
}

// report tells what is not healthy. A member whose kind has no health to speak of is healthy if it is there.
func (r *round) report(checker *health.Checker) {
	r.out.Waiting, r.failing = nil, false
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if !wanted(m) || r.gone(m) {
			continue
		}
		if !checker.NeedsObject(kindOf(m)) {
			meta, seen := r.state(m)
			switch {
			case seen && meta == nil:
				r.waitFor(refOf(m), "is missing")
			case seen && meta.Deleting:
				r.waitFor(refOf(m), "is being deleted")
			}
			continue
		}
		last := r.memory.checked[keyOf(m)]
		if last.status == health.Current {
			continue
		}
		r.failing = r.failing || last.status == health.Failed
		r.waitFor(refOf(m), last.message)
		if _, seen := r.state(m); !seen {
			r.again(lookAgain)
		}
	}
	r.out.Healthy = len(r.out.Waiting) == 0
}
