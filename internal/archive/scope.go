package archive

import (
	"context"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/memory"
)

// scope is what the rules say inside one folder. It is built from the scope of the folder above, so that a walk
// asks only the patterns that can still change the verdict, and of these only about the new name.
type scope struct {
	// live holds, last line first, the patterns that have not matched the folder, still can match something
	// beneath it, and come after the line that decided about the folder.
	live []cursor
	// late is how many of live, at its beginning, are lines that come after those of all ignore files.
	late int
	// files are the rules that come to be live in the folders beneath; nil when a later line has decided.
	files *folderRules
	// drawn is what live takes where it is this folder's own.
	drawn int64
	// excluded is the verdict about the folder, and so about everything beneath it that no live pattern matches.
	excluded bool
	// budget is shared by all scopes of one walk; nil is unlimited.
	budget *budget
}

// budget is how much work a walk may still spend on matching names with patterns.
type budget struct{ left, limit int64 }

// contextStride is how much work is done between two looks at the context: a few milliseconds.
const contextStride = 1 << 20

func (b *budget) spend(ctx context.Context, work int64) error {
	if b == nil {
		return nil
	}
	before := b.left
	if b.left -= work; b.left < 0 {
		return fmt.Errorf("%w: matching the ignore rules (spec.ignore, .sourceignore) with the names in the tree "+
			"compares more than %d bytes", ErrLimit, b.limit)
	}
	if before/contextStride != b.left/contextStride {
		return ctx.Err()
	}
	return nil
}

// cursor is a pattern and how many of its steps the folder's path has taken.
type cursor struct {
	*pattern
	taken int
}

// next feeds the pattern one more name. The pattern is alive as long as a longer path could match it.
func (c cursor) next(ctx context.Context, name string, budget *budget) (taken int, alive bool, err error) {
	s := &c.steps[c.taken]
	ok, work := s.matches(name)
	if err := budget.spend(ctx, work); err != nil {
		return 0, false, err
	}
	if ok {
		return c.taken + 1, true, nil
	}
	return c.taken, s.skip, nil
}

// excludes gives the verdict about a file in the folder.
func (s scope) excludes(ctx context.Context, name string) (bool, error) {
	for _, c := range s.live {
		if c.folders {
			continue
		}
		taken, _, err := c.next(ctx, name, s.budget)
		if err != nil {
			return false, err
		}
		if taken == len(c.steps) {
			return !c.negated, nil
		}
	}
	return s.excluded, nil
}

// enter gives the scope of a folder in the folder, until it is left.
func (s scope) enter(ctx context.Context, name string) (scope, error) {
	inner := scope{live: s.live, late: s.late, files: s.files.in(name), excluded: s.excluded, budget: s.budget}
	shared := true
	for i, c := range s.live {
		taken, alive, err := c.next(ctx, name, s.budget)
		if err != nil {
			return scope{}, err
		}
		if taken == len(c.steps) {
			if shared {
				inner.live = s.live[:i:i]
			}
			if inner.excluded = !c.negated; i < s.late {
				inner.files = nil
			}
			break
		}
		if shared {
			if alive && taken == c.taken {
				continue
			}
			// Most patterns of most rules stay where they are, so that folders mostly share one slice.
			inner.drawn, shared = cursorCost*int64(len(s.live)), false
			inner.live = append(make([]cursor, 0, len(s.live)), s.live[:i]...)
		}
		if alive {
			inner.live = append(inner.live, cursor{pattern: c.pattern, taken: taken})
		} else if i < s.late {
			inner.late--
		}
	}
	inner.late = min(inner.late, len(inner.live))
	inner.add(inner.files.own())
	return inner, memory.Draw(ctx, inner.drawn)
}

// add puts a folder's own lines after all that come from above, but for the late ones.
func (s *scope) add(own []cursor) {
	if len(own) > 0 {
		s.live = slices.Concat(s.live[:s.late], own, s.live[s.late:])
		s.drawn += cursorCost * int64(len(s.live))
	}
}

// leave gives back what the folder took.
func (s scope) leave(ctx context.Context) { memory.Return(ctx, s.drawn) }

// mayInclude tells whether something beneath an excluded folder can be included again.
func (s scope) mayInclude() bool {
	return s.files != nil && s.files.negated || slices.ContainsFunc(s.live, negated)
}

func negated(c cursor) bool { return c.negated }

// cursorCost is the size of a cursor.
const cursorCost = 16
