package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/fluxcd/pkg/envsubst/parse"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"sluice.dev/sluice/internal/transport"
)

// errHeavy says that a build is better done by a worker.
var errHeavy = errors.New("too heavy to be done here")

// errExpression says that the text around a variable cannot be read. What it is wrapped in quotes that text.
var errExpression = fmt.Errorf("%w: not a valid expression", ErrVariable)

// checkNames refuses what Flux does not take for the name of a variable.
func checkNames(vars map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if len(content.IsCIdentifier(name)) > 0 {
			return fmt.Errorf("%w: %s is no name: letters, digits and underscores, no digit first", ErrVariable, transport.PrintableQuoted(name))
		}
	}
	return nil
}

// What a scalar may hold of variables.
const (
	maxReferences = 10_000
	maxNesting    = 32
	maxSimple     = 8 << 20 // bytes made of scalars with variables, before a worker is asked to go on
)

// substitution replaces variables in one scalar after another.
type substitution struct {
	vars   map[string]string
	simple bool  // only expressions whose cost shows beforehand
	left   int64 // bytes that may still be made
	used   map[string]bool
}

func newSubstitution(vars map[string]string, simple bool) *substitution {
	if len(vars) == 0 {
		return nil
	}
	s := &substitution{vars: vars, simple: simple, left: maxText, used: map[string]bool{}}
	if simple {
		s.left = maxSimple
	}
	return s
}

// expand replaces ${name} and the other forms that Flux knows. Values are taken as they are: what looks like a variable
// in one stays. A variable without value is an error unless the expression says what stands for it.
func (s *substitution) expand(text string) (string, error) {
	if err := checkShape(text); err != nil {
		return "", err
	}
	tree, err := parse.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w in %s", errExpression, err, transport.PrintableQuoted(text))
	}
	if s.simple && !isSimple(tree.Root) {
		return "", errHeavy
	}
	missing, room := "", s.left-int64(len(text))
	made, err := envsubst.Eval(text, func(name string) (string, bool) {
		value, ok := s.vars[name]
		if room -= int64(len(value)); room < 0 {
			return "", true
		}
		if ok {
			s.used[name] = true
		} else {
			missing = name
		}
		return value, ok
	})
	s.left -= int64(len(made))
	switch {
	case (room < 0 || s.left < 0) && s.simple:
		return "", errHeavy
	case room < 0 || s.left < 0:
		return "", fmt.Errorf("%w: variables make more than %d bytes of text", ErrLimit, maxText)
	case err != nil:
		// The last one that was looked for in vain, since defaults follow what they stand for.
		return "", fmt.Errorf("%w: there is no value for %s, and no default", ErrVariable, transport.PrintableQuoted(missing))
	}
	return made, nil
}

// checkShape bounds the recursion of the parser.
func checkShape(text string) error {
	if strings.Count(text, "$") > maxReferences {
		return fmt.Errorf("%w: more than %d variables in a scalar", ErrLimit, maxReferences)
	}
	depth := 0
	for i := range len(text) {
		switch {
		case text[i] == '}':
			depth = max(depth-1, 0)
		case text[i] == '$' && i+1 < len(text) && text[i+1] == '{' && (i == 0 || text[i-1] != '$'):
			if depth++; depth > maxNesting {
				return fmt.Errorf("%w: variables in variables, deeper than %d", ErrLimit, maxNesting)
			}
		}
	}
	return nil
}

// isSimple says whether an expression consists of values, texts and defaults only. Others may compare a value with a
// pattern for long, or replace each letter of it.
func isSimple(node parse.Node) bool {
	heavy := func(part parse.Node) bool { return !isSimple(part) }
	switch node := node.(type) {
	case *parse.TextNode:
		return true
	case *parse.ListNode:
		return !slices.ContainsFunc(node.Nodes, heavy)
	case *parse.FuncNode:
		return slices.Contains([]string{"", ":-", "-", ":=", "=", ":+", "+", ":?", "?"}, node.Name) && !slices.ContainsFunc(node.Args, heavy)
	}
	return false
}
