package pkgrepo

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/git"
)

// record plans the tag of what is on the branch already. No two changes of a package have one tree, as each names in its Kptfile
// what it was begun on: a revision of the tree is this one. An open change with files outside of the package is not merged as long as the
// branch has these not.
func (p *plan) record(ctx context.Context, t *task, pkg *Package) error {
	now, err := p.treeAt(ctx, p.snapshot.Head, t.Package)
	switch {
	case err != nil:
		return err
	case now == "":
		return fmt.Errorf("%w: it is not on the branch", ErrGone)
	case now != t.Tree:
		return fmt.Errorf("%w: the branch has tree %s", ErrMoved, now)
	}
	var leave []git.Update
	for _, lifecycle := range []Lifecycle{Proposed, Draft} {
		if r := pkg.open(t.workspace, lifecycle); r != nil && r.Tree == t.Tree {
			if err := p.isInside(ctx, r); err != nil {
				return err
			}
			leave = append(leave, git.Update{Ref: r.Ref, Old: r.Commit})
		}
	}
	if done := first(pkg.newest(), func(r *Revision) bool { return r.Tree == t.Tree }); done != nil {
		p.wasPublished(t, done, leave)
		return nil
	}
	number, err := p.nextNumber(pkg)
	if err != nil {
		return err
	}
	p.numbers[pkg.Path] = number
	t.push(Result{Commit: p.snapshot.Head, Tree: now, Workspace: t.workspace, Number: number},
		append([]git.Update{{Ref: p.ref(place{Published, t.Package, numbered(number)}), New: p.snapshot.Head}}, leave...)...)
	return nil
}

// nextNumber is that of the next revision of a package.
func (p *plan) nextNumber(pkg *Package) (int, error) {
	number := max(pkg.Next(), p.numbers[pkg.Path]+1)
	if number > maxNumber {
		return 0, fmt.Errorf("%w: there is no number above %d", ErrLimit, maxNumber)
	}
	return number, nil
}
