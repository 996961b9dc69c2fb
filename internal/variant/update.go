package variant

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
)

// Basis is what people's edits are told by: the package as it was before them.
type Basis string

const (
	// BasisNone is that there was no package.
	BasisNone Basis = "None"
	// BasisApplied is what the configuration that was applied last makes.
	BasisApplied Basis = "Applied"
	// BasisLock is the upstream package that the package's own lock names, of one that is taken over, or whose last version
	// cannot be made again.
	BasisLock Basis = "UpstreamLock"
	// BasisMade is what was made last, before people's edits, of a package whose lock names what is not there any more.
	BasisMade Basis = "Made"
	// BasisEmpty is nothing, of a package that is taken over and does not say where it comes from, or whose origin is gone: all of it
	// counts as people's.
	BasisEmpty Basis = "Empty"
)

// ErrConflict says that upstream and people changed the same, and that nothing is to be made then.
var ErrConflict = errors.New("upstream and local edits are in conflict")

// Request is what an update is made from.
type Request struct {
	// Next is what the variant is to be.
	Next Version
	// Local is the package that is there, with people's edits; nil for none.
	Local kpt.Package
	// Last is what the local package was made as, nil where that is not known. Its sources need no contents: what is injected
	// into the local package is the controller's, whatever it says.
	Last *Version
	// Locked is the upstream package that the local one's lock names. It stands in for Last in a package that is taken over;
	// nil where it is not known either.
	Locked kpt.Package
	// Made is the local package as it was made last, before people's edits. It stands in where neither Last nor Locked is known.
	Made kpt.Package
	// Base is the tree that the package has on the branch, empty for none; the Kptfile notes it.
	Base string
	// Policy says whose change counts in a conflict. With merge.Fail, nothing is made.
	Policy merge.Policy

	// isUnmarked says that no variant has marked the local package as its own.
	isUnmarked bool
}

// Outcome is what came of it.
type Outcome struct {
	// Package is what is to be there.
	Package kpt.Package
	// Unchanged says that it is there already, byte for byte.
	Unchanged bool
	// Stands says that no variant has marked the local package as its own, and that this is all it lacks: it can be taken over
	// as it is.
	Stands bool
	// Pristine says that there are no edits of people in the package.
	Pristine bool
	// Conflicts are places that upstream and people changed in different ways, in the order of the files.
	Conflicts []merge.Conflict
	// Results are what the functions did.
	Results []function.Result
	// Basis is what people's edits were told by.
	Basis Basis
}

// Desired makes the version, where there is no package yet. Base is as in a Request.
func Desired(ctx context.Context, v Version, base string, renderer Renderer) (Outcome, error) {
	if err := v.Config.complete(); err != nil {
		return Outcome{}, err
	}
	made, err := v.build(ctx, renderer, fromSource(), nil)
	if err != nil {
		return Outcome{}, err
	}
	return v.outcome(made, base, Outcome{Basis: BasisNone, Pristine: true})
}

// Update makes the next version with people's edits in it: what the local package says beyond what the last version makes of
// it. A package that nobody edited becomes exactly what Desired makes.
//
// The controller's own parts are not merged but made: the upstream and its lock, the variant's functions, the labels,
// annotations and keys of the context that the configuration has, and what is injected. What is merged is rendered once more, so
// that what people added is as all else.
//
// With merge.Fail the error is an ErrConflict where there are conflicts, and the Outcome has them and no package.
func Update(ctx context.Context, request Request, renderer Renderer) (Outcome, error) {
	if request.Local == nil {
		return Desired(ctx, request.Next, request.Base, renderer)
	}
	if request.Last == nil {
		var err error
		if request, err = request.takeOver(ctx, renderer); err != nil {
			return Outcome{}, fmt.Errorf("read the local package: %w", err)
		}
	}
	outcome, err := request.update(ctx, renderer)
	outcome.Stands = err == nil && request.stands(outcome.Package)
	return outcome, err
}

// update is Update for a package that is there.
func (r Request) update(ctx context.Context, renderer Renderer) (Outcome, error) {
	theirs, err := Desired(ctx, r.Next, r.Base, renderer)
	if err != nil {
		return Outcome{}, err
	}
	l, err := r.readLocal()
	if err != nil {
		return Outcome{}, fmt.Errorf("read the local package: %w", err)
	}
	base, basis, err := r.basis(ctx, renderer, l)
	if err != nil {
		return Outcome{}, err
	}
	theirs.Basis = basis
	if base.Equal(l.edited) {
		theirs.Unchanged = theirs.Package.Equal(r.Local)
		return theirs, nil
	}
	s := sides{base: base, theirs: theirs.Package, local: l.edited}
	if basis == BasisApplied {
		if s, err = r.alike(ctx, renderer, l, s); err != nil {
			return Outcome{}, err
		}
	}
	if basis == BasisEmpty && !r.isUnmarked && r.Policy == merge.Upstream {
		r.Policy = merge.Local // Nobody can tell any more which values are people's, so none of them is replaced.
	}
	merged, conflicts, err := merge.Merge(s.base, s.theirs, s.local, r.Policy)
	if err != nil {
		return Outcome{}, fmt.Errorf("merge: %w", err)
	}
	if r.Policy == merge.Fail && len(conflicts) > 0 {
		return Outcome{Basis: basis, Conflicts: conflicts}, fmt.Errorf("%w: %s", ErrConflict, conflicts[0])
	}
	outcome, err := r.settle(ctx, renderer, merged, Outcome{Basis: basis, Conflicts: conflicts})
	outcome.Pristine = err == nil && outcome.Package.Equal(theirs.Package)
	return outcome, err
}

// settle makes the controller's parts of what was merged, and renders it.
func (r Request) settle(ctx context.Context, renderer Renderer, merged kpt.Package, outcome Outcome) (Outcome, error) {
	resources, err := kpt.Open(merged)
	if err != nil {
		return Outcome{}, fmt.Errorf("read what was merged: %w", err)
	}
	if err := r.Next.adapt(resources); err != nil {
		return Outcome{}, fmt.Errorf("read what was merged: %w", err)
	}
	made, err := r.Next.finish(ctx, renderer, resources, fromSource(), nil)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err = r.Next.outcome(made, r.Base, outcome)
	outcome.Unchanged = err == nil && outcome.Package.Equal(r.Local)
	return outcome, err
}

// outcome notes where the package comes from.
func (v Version) outcome(made *built, base string, outcome Outcome) (Outcome, error) {
	notes, err := v.notes(base)
	if err != nil {
		return Outcome{}, err
	}
	if err := note(made.resources, notes); err != nil {
		return Outcome{}, err
	}
	outcome.Results = made.results
	outcome.Package, err = made.resources.Package()
	return outcome, err
}
