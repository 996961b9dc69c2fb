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
	part string // of a glob: what every name that it matches contains
	skip bool   // any number of other names may come first
}

type kind uint8

const (
	exact kind = iota
	any1
	prefix
	suffix
	shape // a glob without "*", which is compared with a name once
	glob
)

// parsePattern compiles a line of an ignore file, for paths beneath the file's folder. It reports false for a pattern that
// can match nothing, such as one that is malformed; these count as rules all the same.
func parsePattern(line string) (pattern, bool) {
	var p pattern
	if p.negated = strings.HasPrefix(line, "!"); p.negated {
		line = line[1:]
	}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	line, p.folders = strings.CutSuffix(line, "/")

	if strings.Contains(line, "/") {
		return p, p.parsePath(strings.Split(line, "/"))
	}
	last, ok := parseName(line)
	last.skip = true
	p.steps = append(p.steps, last)
	return p, ok
}

// parsePath compiles a pattern with a slash, which is anchored to its folder.
func (p *pattern) parsePath(names []string) bool {
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
	return len(p.steps) > 0
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
	if !strings.Contains(text, "*") {
		return step{kind: shape, text: text}, true
	}
	return step{kind: glob, text: text, part: literal(text)}, true
}

// literal finds the longest text that every name matched by a well-formed glob contains.
func literal(glob string) string {
	var longest, run []byte
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?':
			run = nil
			continue
		case '[':
			i += classEnd(glob[i:])
			run = nil
			continue
		case '\\':
			i++
		}
		if run = append(run, glob[i]); len(run) > len(longest) {
			longest = run
		}
	}
	return string(longest)
}

// classEnd finds the bracket that closes a well-formed class.
func classEnd(class string) int {
	for i := 0; ; i++ {
		switch class[i] {
		case ']':
			return i
		case '\\':
			i++
		}
	}
}

// lookCost is the work of comparing a name with a pattern that needs no search.
const lookCost = 4

// matches also says how many bytes it compared at worst: path.Match tries what follows a "*" at each place of a name.
func (s *step) matches(name string) (ok bool, work int64) {
	switch s.kind {
	case exact:
		return name == s.text, lookCost
	case any1:
		return true, lookCost
	case prefix:
		return strings.HasPrefix(name, s.text), lookCost
	case suffix:
		return strings.HasSuffix(name, s.text), lookCost
	case shape:
		return match(s.text, name), lookCost + int64(len(s.text))
	case glob:
		// Most names lack the part, which is found out much faster.
		if !strings.Contains(name, s.part) {
			return false, lookCost + int64(len(name))
		}
		return match(s.text, name), lookCost + int64(len(s.text))*int64(len(name))
	default:
		return false, lookCost
	}
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
