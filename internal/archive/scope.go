package archive

// scope is what the rules say inside one folder. It is built from the scope of the folder above, so that a walk
// asks only the patterns that can still change the verdict, and of these only about the new name.
type scope struct {
	// live holds, last line first, the patterns that have not matched the folder, still can match something
	// beneath it, and come after the line that decided about the folder.
	live []cursor
	// excluded is the verdict about the folder, and so about everything beneath it that no live pattern matches.
	excluded bool
}

// cursor is a pattern and how many of its steps the folder's path has taken.
type cursor struct {
	*pattern
	taken int
}

// next feeds the pattern one more name. The pattern is alive as long as a longer path could match it.
func (c cursor) next(name string) (taken int, alive bool) {
	s := &c.steps[c.taken]
	if s.matches(name) {
		return c.taken + 1, true
	}
	return c.taken, s.skip
}

// excludes gives the verdict about a file in the folder.
func (s scope) excludes(name string) bool {
	for _, c := range s.live {
		if c.folders {
			continue
		}
		if taken, _ := c.next(name); taken == len(c.steps) {
			return !c.negated
		}
	}
	return s.excluded
}

// enter gives the scope of a folder in the folder.
func (s scope) enter(name string) scope {
	live, shared := s.live, true
	for i, c := range s.live {
		taken, alive := c.next(name)
		if taken == len(c.steps) {
			if shared {
				live = s.live[:i:i]
			}
			return scope{live: live, excluded: !c.negated}
		}
		if shared {
			if alive && taken == c.taken {
				continue
			}
			// Most patterns of most rules stay where they are, so that folders mostly share one slice.
			live, shared = append(make([]cursor, 0, len(s.live)), s.live[:i]...), false
		}
		if alive {
			live = append(live, cursor{pattern: c.pattern, taken: taken})
		}
	}
	return scope{live: live, excluded: s.excluded}
}

// mayInclude tells whether something beneath an excluded folder can be included again.
func (s scope) mayInclude() bool {
	for _, c := range s.live {
		if c.negated {
			return true
		}
	}
	return false
}
