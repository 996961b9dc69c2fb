package packages

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// pruned is what became of what a history lets go of.
type pruned struct {
	gone    []pkgrepo.Leftover
	refused []pkgrepo.Refusal
	// isMore says that there may be more to remove.
	isMore bool
	// wait is when what is needed may be known, if it is not yet.
	wait time.Duration
	err  error
}

// moreDelay is when the next part of many leftovers is removed.
const moreDelay = 2 * time.Second

// again is when to look again, if that is sooner than in an interval.
func (p pruned) again() time.Duration {
	if p.isMore && len(p.gone) > 0 && p.err == nil {
		return moreDelay
	}
	return p.wait
}

// fewRefs is how many refs a message names.
const fewRefs = 8

// said names what is gone.
func (p pruned) said() string {
	names := make([]string, 0, len(p.gone))
	for _, one := range p.gone {
		names = append(names, shortRef(one.Ref))
	}
	return fmt.Sprintf("Removed from Git, as spec.history has it: %s", printable.List(names, fewRefs))
}

// facts say what stands in the way of a history.
func (p pruned) facts() []status.Fact {
	switch {
	case p.err != nil:
		return []status.Fact{status.True(packagesv1.HistoryBlockedCondition, packagesv1.PushFailedReason,
			printable.Line("What spec.history lets go of could not be removed: "+p.err.Error(), maxConditionWords))}
	case len(p.refused) > 0:
		names := make([]string, 0, len(p.refused))
		for _, one := range p.refused {
			names = append(names, shortRef(one.Ref))
		}
		return []status.Fact{status.True(packagesv1.HistoryBlockedCondition, packagesv1.PushRejectedReason, printable.Line(fmt.Sprintf(
			"The server does not let go of %s: %v", printable.List(names, fewRefs), p.refused[0].Err), maxConditionWords))}
	}
	return nil
}

// refusedBy are the leftovers that the server does not let go of, if they are still to go.
func refusedBy(obj *packagesv1.Repository, m *mirror) []pkgrepo.Refusal {
	if obj.Spec.History == nil {
		return nil
	}
	return m.Refused()
}

// leftovers are what the history lets go of, and nobody needs.
func (k *repositories) leftovers(ctx context.Context, obj *packagesv1.Repository, m *mirror) ([]pkgrepo.Leftover, error) {
	if obj.Spec.History == nil || obj.Spec.History.Revisions == nil {
		return nil, nil
	}
	var failed error
	needed := sync.OnceValue(func() *needs {
		var found *needs
		found, failed = k.needs(ctx)
		return found
	})
	h := pkgrepo.History{Revisions: int(*obj.Spec.History.Revisions), Needed: func(tag, commit string) bool { return needed().has(m.url, tag, commit) }}
	var found []pkgrepo.Leftover
	err := k.shared.inBudget(ctx, obj, func(ctx context.Context) (err error) {
		found, err = m.Leftovers(ctx, h)
		return err
	})
	if failed != nil {
		return nil, failed // Nobody knows what is needed, so that everything is.
	}
	return found, err
}

// tellGone writes down where the refs were that are gone, so that they can be made again.
func (k *repositories) tellGone(ctx context.Context, result pkgrepo.Result) {
	k.shared.Changed(pkgrepo.Prune, result.Err)
	for _, one := range result.Gone {
		ctrl.LoggerFrom(ctx).Info("removed from Git what the history lets go of", "ref", strings.Clone(one.Ref), "commit", one.Commit)
	}
}
