package engine

import (
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// orphan lets go of all members: their labels are stripped, and nothing else. An object that is not this
// installation's, or gone, is let go of already.
func (r *round) orphan(ctx context.Context) (bool, error) {
	released := each(func() error { return r.over(ctx) }, r.engine.options.Parallel, r.remaining(), func(m modulesv1.Member) removal { return r.release(ctx, m) },
		func(m modulesv1.Member, err error) removal { return removal{member: m, err: err} })
	var failed []memberError
	for _, one := range released {
		if one.err != nil {
			failed = append(failed, memberError{refOf(&one.member), r.withoutRights(one.err)})
			continue
		}
		r.forget(keyOf(&one.member))
	}
	if err := joined(StageDelete, modulesv1.DeletionFailedReason, failed); err != nil {
		return false, errors.Join(err, r.saveRemoved(ctx))
	}
	return true, nil
}

func (r *round) release(ctx context.Context, m modulesv1.Member) removal {
	done := removal{member: m}
	ref, live, err := r.find(ctx, refOf(&m))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case errors.Is(err, cluster.ErrNoKind):
		done.err = r.kindIsGone(ctx, &m, err)
	case errors.Is(err, cluster.ErrForbidden) && r.session.isUnmade(&m):
	case err != nil:
		done.err = err
	case r.owns(live, &m):
		done.err = r.client.Release(ctx, withUID(ref, live.UID), live.ResourceVersion, ours())
		if errors.Is(done.err, cluster.ErrNotFound) {
			done.err = nil
		}
	default:
		done.err = r.letGo(ctx, ref, live)
	}
	return done
}
