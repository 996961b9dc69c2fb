package archive

import (
	"path"
	"strings"
)

// pattern is one line of ignore rules, compiled to a machine that is fed the names of a path one after the other.
//
// The rules are those of the gitignore matcher that Flux uses, not git's own: matching is greedy and never goes
// back, so that "**/a/b" does not match "a/x/a/b". A pattern that matches a folder matches everything beneath it.
type pattern struct {
	steps   []step
	negated bool // the line began with "!"
	folders bool // the line ended with "/": of a path's last name, only a folder's counts
}

// step matches one name of a path.
type step struct {
	kind kind
	text string
	skip bool // any number of other names may come first
}

type kind uint8

const (
	exact kind = iota
	any1
	prefix
	suffix
	glob
)

// parsePattern compiles a line of the ignore file in the folder domain. It reports false for a pattern that can
// match nothing, such as one that is malformed; these count as rules all the same.
func parsePattern(line string, domain []string) (pattern, bool) {
	var p pattern
	if p.negated = strings.HasPrefix(line, "!"); p.negated {
		line = line[1:]
	}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	line, p.folders = strings.CutSuffix(line, "/")

	for _, name := range domain {
		p.steps = append(p.steps, step{kind: exact, text: name})
	}
	if strings.Contains(line, "/") {
		return p, p.parsePath(strings.Split(line, "/"), len(domain))
	}
	last, ok := parseName(line)
	last.skip = true
	p.steps = append(p.steps, last)
	return p, ok
}

// parsePath compiles a pattern with a slash, which is anchored to its folder.
func (p *pattern) parsePath(names []string, domain int) bool {
	skip := false
	for i, name := range names {
		switch {
		case name == "":
			skip = false
		case name == "**":
			skip = i < len(names)-1
		case strings.Contains(name, "**"):
			return false
		default:
			next, ok := parseName(name)
			if !ok {
				return false
			}
			next.skip, skip = skip, false
			p.steps = append(p.steps, next)
		}
	}
	return len(p.steps) > domain
}

// parseName chooses the cheapest way to match a name. It reports false for one that path.Match calls malformed,
// and for the empty one, which no name equals.
func parseName(text string) (step, bool) {
	if _, err := path.Match(text, ""); err != nil || text == "" {
		return step{}, false
	}
	const meta = `*?[\`
	if !strings.ContainsAny(text, meta) {
		return step{kind: exact, text: text}, true
	}
	if rest := strings.TrimLeft(text, "*"); rest == "" {
		return step{kind: any1}, true
	} else if !strings.ContainsAny(rest, meta) {
		return step{kind: suffix, text: rest}, true
	}
	if rest := strings.TrimRight(text, "*"); !strings.ContainsAny(rest, meta) {
		return step{kind: prefix, text: rest}, true
	}
	return step{kind: glob, text: text}, true
}

func (s *step) matches(name string) bool {
	switch s.kind {
	case exact:
		return name == s.text
	case any1:
		return true
	case prefix:
		return strings.HasPrefix(name, s.text)
	case suffix:
		return strings.HasSuffix(name, s.text)
	case glob:
		ok, err := path.Match(s.text, name)
		return ok && err == nil
	default:
		return false
	}
}
