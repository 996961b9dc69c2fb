package function

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// searchPath is a path that values are compared with while an object is gone through: that of a field, where ** stands for any
// number of steps.
type searchPath []searchStep

type searchStep struct {
	step
	// any stands for any number of steps, none as well.
	any bool
}

// states are the places in a path that were reached, a bit for each.
type states uint64

// maxSearchSteps is how many places there are room for.
const maxSearchSteps = 60

// parseSearchPath takes the path apart. a[0] and a[*] are a.0 and a.*.
func parseSearchPath(from string) (searchPath, error) {
	parsed, err := parsePath(bracketed.ReplaceAllString(from, "$1.$2"))
	if err != nil {
		return nil, err
	}
	if len(parsed) > maxSearchSteps {
		return nil, fmt.Errorf("the path is longer than %d parts", maxSearchSteps)
	}
	path := searchPath{}
	for _, s := range parsed {
		path = append(path, searchStep{step: s, any: s.key == "**"})
	}
	return path, nil
}

// bracketed is a place behind a name.
var bracketed = regexp.MustCompile(`([^.\[])\[(\*|\d+)\]`)

// begin is the state at the object itself.
func (p searchPath) begin() states { return p.widen(1) }

// widen adds what is reached by no step more.
func (p searchPath) widen(reached states) states {
	for i, s := range p {
		if s.any && reached&(1<<i) != 0 {
			reached |= 1 << (i + 1)
		}
	}
	return reached
}

// follow is what is reached by one step more: to a key, or to the place in a list if that is not below 0.
func (p searchPath) follow(reached states, key string, place int, node *yaml.Node) states {
	var next states
	for i, s := range p {
		switch {
		case reached&(1<<i) == 0:
		case s.any:
			next |= 1 << i
		case place >= 0 && s.matches(place, node), place < 0 && !s.where && (s.every || s.key == key):
			next |= 1 << (i + 1)
		}
	}
	return p.widen(next)
}

// ends tells whether all of the path was followed.
func (p searchPath) ends(reached states) bool { return reached&(1<<len(p)) != 0 }

// filePattern matches names of files: * and ? are within a folder, and ** is any folders.
func filePattern(glob string) (*regexp.Regexp, error) {
	if glob == "" {
		return nil, nil //nolint:nilnil // No pattern matches all.
	}
	if len(glob) > maxPattern {
		return nil, errors.New("is too long")
	}
	out := strings.Builder{}
	out.WriteString("^")
	for rest := glob; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			out.WriteString(".*")
			rest = rest[2:]
		case rest[0] == '*':
			out.WriteString("[^/]*")
			rest = rest[1:]
		case rest[0] == '?':
			out.WriteString("[^/]")
			rest = rest[1:]
		case strings.ContainsRune("[]{}\\", rune(rest[0])):
			return nil, fmt.Errorf("the pattern %q: there are *, ** and ? alone", glob)
		default:
			out.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		}
	}
	return regexp.Compile(out.String() + "$")
}
