package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// orphan lets go of all members: nothing on them says any more that they were members. An object that is not this
// installation's, or gone, is let go of already. One that may not be written is let go of with its labels on: nothing is
// asked of it but to stay, and the rights may be gone for good.
func (r *round) orphan(ctx context.Context) (bool, error) {
	released := each(func() error { return r.over(ctx) }, r.engine.options.Parallel, r.remaining(), func(m modulesv1.Member) removal { return r.release(ctx, m) },
		func(m modulesv1.Member, err error) removal { return removal{member: m, err: err} })
	var failed, forbidden []memberError
	for _, one := range released {
		switch {
		case errors.Is(one.err, cluster.ErrForbidden):
			forbidden = append(forbidden, memberError{refOf(&one.member), one.err})
		case one.err != nil:
			failed = append(failed, memberError{refOf(&one.member), r.withoutRights(one.err)})
			continue
		}
		r.forget(keyOf(&one.member))
	}
	r.noteLabelled(forbidden)
	if err := joined(StageDelete, modulesv1.DeletionFailedReason, failed); err != nil {
		return false, errors.Join(err, r.saveRemoved(ctx))
	}
	return true, nil
}

// noteLabelled tells on which objects the labels stay.
func (r *round) noteLabelled(forbidden []memberError) {
	if len(forbidden) == 0 {
		return
	}
	names := make([]string, 0, maxNamed)
	for _, one := range forbidden[:min(len(forbidden), maxNamed)] {
		names = append(names, describe(one.ref))
	}
	text := strings.Join(names, ", ")
	if more := len(forbidden) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	r.out.Notes = append(r.out.Notes, Note{Reason: modulesv1.OrphanedReason, Warning: true, Message: bounded(fmt.Sprintf(
		"let go of %s without taking the labels off: %v", text, forbidden[0].err))})
}

func (r *round) release(ctx context.Context, m modulesv1.Member) removal {
	return unchanged(func() removal { return r.releaseOnce(ctx, m) })
}

func (r *round) releaseOnce(ctx context.Context, m modulesv1.Member) removal {
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
		done.err = r.spare(ctx, ref, live)
		if errors.Is(done.err, cluster.ErrNotFound) {
			done.err = nil
		}
	}
	return done
}
