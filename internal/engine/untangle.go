package engine

import (
	"context"
	"errors"
	"fmt"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// reclaim removes what others have put into lists of an object, by applying it once more.
func (t taker) reclaim(ctx context.Context, o object, only cluster.Version, entries []cluster.Entry, options cluster.ApplyOptions) (cluster.Applied, error) {
	managed, err := t.client.Manage(ctx, refOfObject(o.Unstructured), only, cluster.Management{Entries: entries, Manager: t.manager})
	if err != nil {
		return cluster.Applied{}, err
	}
	options.Only, options.Force = managed.Version(), true
	return t.client.Apply(ctx, o.Unstructured, options)
}

// refused goes on where an object is refused as it would become.
func (t taker) refused(ctx context.Context, o object, m *modulesv1.Member, options cluster.ApplyOptions, answer error) (cluster.Applied, error) {
	if t.client.Rehearses() && len(o.yielded) > 0 {
		// What is given up is not yet, and an apply without it takes it away.
		options.Force = true
		applied, err := t.client.Apply(ctx, o.whole, options)
		if !errors.Is(err, cluster.ErrInvalid) {
			return applied, err
		}
		answer = err
	}
	if m == nil || m.UID == "" {
		return cluster.Applied{}, answer
	}
	return t.untangle(ctx, o, options, answer)
}

// untangle goes on where an object is refused together with what others have put into its lists: an edited port, say.
func (t taker) untangle(ctx context.Context, o object, options cluster.ApplyOptions, answer error) (cluster.Applied, error) {
	live, err := t.client.Metadata(ctx, refOfObject(o.Unstructured))
	if err != nil || options.Only.UID != live.UID {
		return cluster.Applied{}, answer
	}
	entries := cluster.Reclaim(live.ManagedFields, t.manager, o.Unstructured, func(cluster.Entry) bool { return true })
	if entries == nil {
		return cluster.Applied{}, answer
	}
	if t.client.Rehearses() {
		return cluster.Applied{}, fmt.Errorf("%w: %w", errUntried, answer)
	}
	return t.reclaim(ctx, o, versionOf(live), entries, options)
}

// errUntried says that a dry run cannot tell what becomes of an object.
var errUntried = errors.New("it cannot be tried before what others have put into its lists is removed")
