package variant

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
)

// sides are what is merged: the package as it was before people's edits, as the next version has it, and as it is there.
type sides struct {
	base, theirs, local kpt.Package
}

// local is the package that is there.
type local struct {
	// fill fills points of injection and slots with what they hold there, and notes is what its Kptfile says of where it comes from.
	fill  filler
	notes map[string]string
	// edited is the package with what people did to the controller's own parts taken back: it is none of their edits, and in
	// conflict with nothing.
	edited kpt.Package
}

func (r Request) readLocal() (*local, error) {
	resources, err := kpt.Open(r.Local)
	if err != nil {
		return nil, err
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return nil, err
	}
	l := &local{notes: kptfile.Annotations()}
	if l.fill, err = fromLocal(resources); err != nil {
		return nil, err
	}
	version := r.Next
	if r.Last != nil {
		version = *r.Last
	}
	if err := version.adapt(resources); err != nil {
		return nil, err
	}
	l.edited, err = resources.Package()
	return l, err
}

// basis is the package as it was before people's edits.
func (r Request) basis(ctx context.Context, renderer Renderer, l *local) (kpt.Package, Basis, error) {
	switch {
	case r.Last != nil:
		base, err := r.last(ctx, renderer, l, nil)
		if err != nil && !passing(ctx, err) {
			// Functions have become stricter since. The upstream package alone tells less about people's edits, but it tells
			// something, and the next update can tell all again.
			return r.Last.Blueprint.Package, BasisLock, nil
		}
		return base, BasisApplied, err
	case r.Locked != nil:
		return r.Locked, BasisLock, nil
	case r.Made != nil:
		return r.Made, BasisMade, nil
	default:
		return kpt.Package{}, BasisEmpty, nil
	}
}

// passing tells whether the error may be gone the next time.
func passing(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, function.ErrTimeout) || errors.Is(err, function.ErrUnavailable) ||
		errors.Is(err, function.ErrSchemas)
}

// last makes the last version once more, with what is injected locally, and with the notes that the local package has.
func (r Request) last(ctx context.Context, renderer Renderer, l *local, with *functions) (kpt.Package, error) {
	made, err := r.Last.build(function.WithoutValidators(ctx), renderer, l.fill, with)
	if err != nil {
		return nil, fmt.Errorf("make the last version once more: %w", err)
	}
	// Functions may have changed what was injected, here as in the local package.
	if err := r.Last.Config.inject(made.resources, l.fill); err != nil {
		return nil, err
	}
	if _, err := r.Last.Config.bind(made.resources, l.fill); err != nil {
		return nil, err
	}
	if err := note(made.resources, l.notes); err != nil {
		return nil, err
	}
	return made.resources.Package()
}

// alike are the sides with all three rendered by people's functions as well, where there are any: what such a function did to an
// object is no edit of it, or upstream could neither remove nor change it without a conflict. Where that cannot be done, the
// sides stay as they are; what is wrong shows when the merged package is rendered.
func (r Request) alike(ctx context.Context, renderer Renderer, l *local, s sides) (sides, error) {
	other, err := r.rendered(ctx, renderer, l, s)
	switch {
	case err == nil:
		return other, nil
	case passing(ctx, err):
		return sides{}, err
	default:
		return s, nil
	}
}

func (r Request) rendered(ctx context.Context, renderer Renderer, l *local, s sides) (sides, error) {
	own, err := functionsOf(s.base)
	if err != nil {
		return sides{}, err
	}
	peoples, err := functionsOf(s.local)
	if err != nil {
		return sides{}, err
	}
	if same, err := own.same(peoples); same || err != nil {
		return s, err
	}
	rendered, _, err := anonymous{renderer, r.Last.Config.Owner}.Render(ctx, s.local)
	if err != nil {
		return sides{}, err
	}
	other := sides{local: maps.Clone(rendered)}
	for name, file := range s.local {
		if _, found := s.base[name]; !found {
			other.local[name] = file // What people added is compared with nothing; the next version's functions see it as it is.
		}
	}
	if other.base, err = r.last(ctx, renderer, l, peoples); err != nil {
		return sides{}, err
	}
	// Which functions there will be, only a merge tells.
	merged, _, err := merge.Merge(s.base, s.theirs, s.local, merge.Upstream)
	if err != nil {
		return sides{}, err
	}
	next, err := functionsOf(merged)
	if err != nil {
		return sides{}, err
	}
	made, err := r.Next.build(ctx, renderer, fromSource(), next)
	if err != nil {
		return sides{}, err
	}
	theirs, err := r.Next.outcome(made, r.Base, Outcome{})
	other.theirs = theirs.Package
	return other, err
}
