package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/storage"
)

// end sees to the ExternalArtifacts of what is stored, and removes those that are not made any more.
func (r *round) end(ctx context.Context) (Result, error) {
	result := Result{Sources: r.sources}
	names := map[string]bool{}
	for _, made := range r.planned {
		names[made.Name] = true
		stored, err := r.show(ctx, made)
		if errors.Is(err, ErrStale) {
			return result, err
		}
		if err != nil {
			r.fail(made.Name, err)
		}
		if stored.Path != "" {
			result.Made = append(result.Made, Made{made.Name, stored})
		}
	}
	result.Known, result.Changed = true, r.changed
	var err error
	if result.Removed, err = r.outputs.Prune(ctx, names); errors.Is(err, ErrStale) {
		return result, err
	} else if err != nil {
		r.fail("", failure.Retry(extensionsv1.ReconciliationFailedReason, err))
	}
	if outputs, ok := r.settled(); ok {
		r.known.Add(string(r.obj.UID), known{r.shape, r.sources, outputs})
	}
	if len(r.failed) > 0 {
		return result, r.problems()
	}
	return result, nil
}

// settled are the outputs as they are remembered, if nothing but what others have made is in their way: for as long as that is
// there, the sources need not be read again.
func (r *round) settled() ([]output, bool) {
	outputs := named(r.planned)
	for _, problem := range r.failed {
		at := slices.IndexFunc(outputs, func(made output) bool { return made.Name == problem.name })
		if at < 0 || !errors.Is(problem.err, ErrTaken) {
			return nil, false
		}
		outputs[at].taken = true
	}
	return outputs, true
}

// heal puts right what shows artifacts, while it cannot be found out what these should be by now.
func (r *round) heal(ctx context.Context) {
	if known, ok := r.known.Peek(string(r.obj.UID)); ok {
		r.planned = known.outputs
	} else if r.obj.Spec.PathPattern == "" {
		r.planned = plain(r.obj.Spec)
	}
	for _, made := range r.planned {
		_, _ = r.show(ctx, made) // Why nothing can be made is told, and more than that is tried again.
	}
}

// show has the ExternalArtifact of an output say what is stored. One that somebody has deleted is made anew, with the same artifact.
func (r *round) show(ctx context.Context, made output) (storage.Artifact, error) {
	record, err := r.Pipeline.Store.Record(ctx, r.object(made.Name))
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) || err == nil && record.Memo != string(r.obj.UID) {
		return storage.Artifact{}, nil // Why there is none of ours is told already.
	}
	if err != nil {
		return storage.Artifact{}, failure.Retry(extensionsv1.ReconciliationFailedReason, err)
	}
	claimed, err := r.outputs.Claim(ctx, made.Name, made.labels)
	if err != nil {
		return storage.Artifact{}, err
	}
	if claimed.UID != record.UID {
		if record, err = r.adopt(ctx, claimed, record); err != nil {
			return storage.Artifact{}, err
		}
	}
	if err := r.outputs.Publish(ctx, claimed, record.Current); err != nil {
		return record.Current, err
	}
	if was := claimed.Reported; was == nil || was.Digest != record.Current.Digest || was.Revision != record.Current.Revision {
		r.changed = append(r.changed, Made{made.Name, record.Current})
	}
	if claimed.Reported == nil || claimed.Reported.Path != record.Current.Path || len(record.Superseded) > 0 {
		_, err = r.Pipeline.Store.Collect(ctx, r.object(made.Name), record.Current.Path)
	}
	return record.Current, err
}

// fail notes a problem, once for each name.
func (r *round) fail(name string, err error) {
	if !slices.ContainsFunc(r.failed, func(p problem) bool { return p.name == name }) {
		r.failed = append(r.failed, problem{name, err})
	}
}

// problems is what is wrong, in one error: what may pass by itself before what may not, and how much more there is.
func (r *round) problems() error {
	first := slices.MinFunc(r.failed, func(a, b problem) int {
		return cmp.Compare(failure.Of(a.err).Disposition, failure.Of(b.err).Disposition)
	})
	f := *failure.Of(first.err)
	f.Reason = cmp.Or(f.Reason, extensionsv1.ReconciliationFailedReason)
	if first.name != "" {
		step := "reconcile"
		if f.Reason == extensionsv1.BuildFailedReason {
			step = "build"
		}
		f.Err = fmt.Errorf("%s %s failed: %w", first.name, step, first.err)
	}
	if more := len(r.failed) - 1; more > 0 {
		f.Err = fmt.Errorf("%w (and %d more)", f.Err, more)
	}
	return &f
}
