package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// recreate deletes an object that cannot be changed in place, and applies it again, if the spec asks for that. What may
// hold data, and whatever is not provably this installation's, is not deleted: the answer stays, with the reason. What
// somebody else makes in its place meanwhile is not forced.
func (t taker) recreate(ctx context.Context, o object, m *modulesv1.Member, options cluster.ApplyOptions, answer error) (cluster.Applied, error) {
	ref := refOfObject(o.Unstructured)
	live, err := t.client.Get(ctx, ref)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return cluster.Applied{}, err
	default:
		if why := t.irreplaceable(live, m); why != "" {
			return cluster.Applied{}, fmt.Errorf(
				"%w; spec.force does not delete it, because %s: delete it yourself if that can be lost, or take the change out with a patch in spec.config",
				answer, why)
		}
		if !t.force && !isForced(o.Unstructured) && !isForced(live) {
			return cluster.Applied{}, fmt.Errorf("%w; set spec.force, or the annotation %s: enabled, to have it deleted and made anew", answer, ForceAnnotation)
		}
		ref.UID = live.GetUID()
		gone, err := t.client.Delete(ctx, ref, live.GetResourceVersion())
		if err != nil {
			return cluster.Applied{}, err
		}
		if t.client.Rehearses() {
			// What is there still is in the way of what would take its place.
			return cluster.Applied{Seen: cluster.See(live)}, nil
		}
		if !gone {
			if _, err := t.client.Metadata(ctx, ref); !errors.Is(err, cluster.ErrNotFound) {
				return cluster.Applied{}, fmt.Errorf("%w; it is being deleted, to be created again: %w", errGoing, answer)
			}
		}
	}
	return t.client.Apply(ctx, o.whole, cluster.ApplyOptions{Manager: options.Manager, Only: cluster.Absent()})
}

// irreplaceable says why an object is not deleted to be made anew; "" when it may be.
func (t taker) irreplaceable(live *unstructured.Unstructured, m *modulesv1.Member) string {
	known := t.facts(m, live)
	switch {
	case isContainer(known.kind):
		known.holds = "what is in a " + known.kind.Kind + " would go with it"
	case slices.ContainsFunc(t.managed, func(one modulesv1.ManagedResource) bool {
		return one.Group == known.kind.Group && one.Kind == known.kind.Kind
	}):
		known.holds = known.kind.Kind + " is one of the release's managedResources, which are users' data"
	case known.kind == statefulKind():
		known.holds = claimsOf(live)
	}
	_, why := known.fate()
	return why
}

// errGoing says that an object is on its way out, which will not take long.
var errGoing = errors.New("object is being deleted")

const (
	// goingAgain is how soon an object that is on its way out is looked at again.
	goingAgain = 2 * time.Second
	// watchedAgain is the same where the watch tells its end.
	watchedAgain = time.Minute
)
