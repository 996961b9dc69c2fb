package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/view"
)

// resumer is one call of resume.
type resumer struct {
	*planner

	chosen  selection
	waiting waiting
	wait    bool
	// shows says that plans are shown first, and yes that nobody is asked then.
	shows, yes bool
}

func resumeCommand(b *base) *cobra.Command {
	r := &resumer{planner: newPlanner(b), chosen: suspendable()}
	command := &cobra.Command{
		Use:   "resume [KIND] NAME... | KIND/NAME...",
		Short: "Have work done again for objects that are suspended",
		Example: `  sluice resume redis --wait
  sluice resume redis --plan
  sluice resume gitrepositories --all`,
		ValidArgsFunction: b.complete(kindNames("sources")),
	}
	r.chosen.bind(command)
	r.waiting.bind(command)
	flags := command.Flags()
	flags.BoolVar(&r.wait, "wait", false, "Wait for what comes of it, as reconcile does.")
	r.bindPlans(command, &r.shows, "Show first what follows, of installations, and ask.")
	bindSystem(flags, &r.given)
	flags.BoolVarP(&r.yes, "yes", "y", false, "Resume without being asked, once the plan is shown.")
	return b.on(command, func(ctx context.Context, args []string) error {
		switch {
		case !r.wait && flags.Changed(timeoutFlag):
			return usage("--timeout is for what is waited for, and nothing is", "add --wait")
		case r.shows && !r.yes && !isTerminal(b.In):
			return unasked("--yes resumes once the plan is shown")
		}
		if err := unplannable(command, "yes", "system-namespace"); err != nil {
			return err
		}
		return r.run(ctx, args)
	})
}

func (r *resumer) run(ctx context.Context, args []string) error {
	if r.shows {
		r.chosen.can, r.chosen.cannot = func(k kind) bool { return k.resource == kinds()[0].resource }, "has no plan"
	}
	targets, err := r.chosen.find(ctx, r.base, args)
	if err != nil {
		return err
	}
	var problems []error
	if r.shows {
		targets, err = r.agreedTo(ctx, targets)
		problems = append(problems, err)
	}
	inTime, stop, err := r.waiting.within(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var resumed []*target
	problems = append(problems, r.each(ctx, targets, func(t *target) error {
		if !view.IsSuspended(t.obj) {
			t.at = "not suspended"
			return nil
		}
		t.at = "resumed"
		patch := t.suspends.resuming()
		if r.shows {
			// What has changed since the plan was made is not resumed.
			metadata, _ := patch["metadata"].(map[string]any)
			metadata["resourceVersion"] = t.obj.GetResourceVersion()
		}
		if !r.wait {
			return r.patch(ctx, t, patch)
		}
		err := r.request(ctx, t, patch)
		if err == nil {
			resumed = append(resumed, t)
		}
		return err
	}))
	if !r.wait {
		return errors.Join(problems...)
	}
	for _, t := range resumed {
		t.verdict = pending
	}
	return errors.Join(append(problems, r.waiting.on(r.base, attempted).await(inTime, resumed), answered(resumed))...)
}

// agreedTo shows what follows for each target that is suspended, and keeps those for which that is agreed to.
func (r *resumer) agreedTo(ctx context.Context, targets []*target) ([]*target, error) {
	var kept []*target
	var problems []error
	for _, t := range targets {
		if view.IsSuspended(t.obj) {
			if err := r.shownAndAgreed(ctx, t); err != nil {
				problems = append(problems, err)
				if ctx.Err() != nil {
					return nil, errors.Join(problems...)
				}
				continue
			}
		}
		kept = append(kept, t)
	}
	return kept, errors.Join(problems...)
}

func (r *resumer) shownAndAgreed(ctx context.Context, t *target) error {
	told, err := r.make(ctx, t.name)
	if err != nil {
		return unplannedFor(ref{t.Kind, t.namespace, t.name}, err)
	}
	if err := unprinted(told.print(newTable(r.Out, false), r.detail)); err != nil || r.yes {
		return err
	}
	return r.agreed(ctx, "resume "+t.String(), "Resume "+t.String())
}
