package source

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
)

// Within runs work once there is a slot, and memory and temporary files to draw from. Work that comes upon too little of these is
// run again from its beginning.
func (p *Pipeline) Within(ctx context.Context, wish fair.Wish, work func(context.Context) error) error {
	return p.Files.Do(ctx, wish, nil, func(ctx context.Context) error {
		return p.Memory.Do(ctx, wish, p.Slots, work)
	})
}

// Put makes content that is at hand an object's artifact; it is called within Within. Content whose Key is that of what is stored
// is not archived again. Where the content's revision is that of its bytes, RevisionOf gives it. Errors are StageErrors.
func (p *Pipeline) Put(ctx context.Context, subject Subject, selected Selection, content Content) (Outcome, error) {
	r := &run{Pipeline: p, subject: subject, selected: selected}
	if err := r.record(ctx); err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	staged, have, err := r.keep(ctx)
	if err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	reused := have != "" && have == content.Key
	if have != "" && !reused {
		if err := r.Store.Discard(context.WithoutCancel(ctx), staged); err != nil {
			return Outcome{}, failure.At(StageStore, fmt.Errorf("discard what is stored: %w", err))
		}
	}
	if !reused {
		if staged, err = r.archive(ctx, ctx, content); err != nil {
			return Outcome{}, err
		}
	}
	if content.RevisionOf != nil {
		r.selected.Revision = content.RevisionOf(staged.Digest)
	}
	stored, err := r.publish(ctx, content, "", staged)
	if err == nil {
		_, err = r.Store.Collect(ctx, subject.Object, subject.named())
	}
	if err != nil {
		return Outcome{}, failure.At(StageStore, err)
	}
	if !reused {
		p.Observer.Stored(subject.Object, stored.Current.Size)
	}
	p.Observer.Run(subject.Object.Kind, !reused)
	return Outcome{Changed: !reused, Known: true, Record: stored, Selected: r.selected}, nil
}
