package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/transport"
)

const (
	// maxLength of an expression, in bytes.
	maxLength = 4096
	// maxCost bounds one evaluation, in CEL's units of work: a fifth of a second at worst. What CEL takes to count them
	// grows with their square.
	maxCost = 30_000
	// maxVariables is how many names an expression may use.
	maxVariables = 64
	// maxPrograms is how many expressions are remembered.
	maxPrograms = 1024
)

var (
	errEmpty = errors.New("the expression is empty")
	// errBool is an expression that cannot be true or false.
	errBool = errors.New("the expression must be true or false")
)

// Library compiles expressions and remembers them, so that all installations of a release share the work. Its methods
// may be called concurrently.
type Library struct {
	base     *cel.Env
	programs *lru.Cache[source, *program]
}

// source is what a program is compiled from. It uses dep and self, or else the fields of an object, whatever they are.
type source struct {
	text         string
	ofDependency bool
}

// program is a compiled expression.
type program struct {
	text string
	// names are the variables it uses.
	names   []string
	program cel.Program
}

// NewLibrary makes a Library. Expressions have CEL's standard functions and macros, but for regular expressions, and
// optional fields (status.?phase).
func NewLibrary() (*Library, error) {
	base, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(maxLength),
		// Extensions of CEL do any amount of work, or make strings and lists of any size, before their cost is counted.
	)
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	programs, err := lru.New[source, *program](maxPrograms)
	if err != nil {
		return nil, fmt.Errorf("remember expressions: %w", err)
	}
	return &Library{base: base, programs: programs}, nil
}

// compile compiles the expression, or remembers that it did.
func (l *Library) compile(from source) (*program, error) {
	if known, ok := l.programs.Get(from); ok {
		return known, nil
	}
	text := from.text
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes; at most %d are allowed", len(text), maxLength)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errEmpty
	}
	parsed, issues := l.base.Parse(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("parse %q: %s", shorten(text), transport.Printable(err.Error()))
	}
	if err := refuse(parsed); err != nil {
		return nil, fmt.Errorf("compile %q: %w", shorten(text), err)
	}
	names := []string{"dep", "self"}
	if !from.ofDependency {
		names = variables(parsed)
	}
	if len(names) > maxVariables {
		return nil, fmt.Errorf("the expression uses %d names; at most %d are allowed", len(names), maxVariables)
	}
	declared := make([]cel.EnvOption, 0, len(names))
	for _, name := range names {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	env, err := l.base.Extend(declared...)
	if err != nil {
		return nil, fmt.Errorf("compile %q: %s", shorten(text), transport.Printable(err.Error()))
	}
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("compile %q: %s", shorten(text), transport.Printable(err.Error()))
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("compile %q: %w, not %s", shorten(text), errBool, kind)
	}
	compiled, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostTracking(work{}), cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("compile %q: %s", shorten(text), transport.Printable(err.Error()))
	}
	made := &program{text: shorten(text), names: names, program: compiled}
	l.programs.Add(from, made)
	return made, nil
}

// variables are the names that the expression uses, so that each can be declared: an object's fields are not known
// beforehand, but functions and operators can be checked all the same. Names that a macro binds are among them, and
// hide what is declared here.
func variables(parsed *cel.Ast) []string {
	var names []string
	for _, found := range ast.MatchDescendants(ast.NavigateAST(parsed.NativeRep()), ast.KindMatcher(ast.IdentKind)) {
		names = append(names, found.AsIdent())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return name == "" || strings.ContainsAny(name[:1], "@.") || strings.HasPrefix(name, "__") || slices.Contains(reserved(), name)
	})
}

// reserved are names that are types in CEL.
func reserved() []string {
	return []string{"bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "timestamp", "duration", "type", "uint", "optional_type"}
}

// holds evaluates the expression, and adds to spent what that cost: all it may, if it was broken off. A name that the values
// lack is a field that is not there.
func (p *program) holds(values map[string]any, spent *atomic.Uint64) (bool, error) {
	given := make(map[string]any, len(p.names))
	for _, name := range p.names {
		value, there := values[name]
		if !there {
			// An empty object in its place makes has() false and an access fail, as for any other field.
			value = map[string]any{}
		}
		given[name] = value
	}
	result, details, err := p.program.Eval(given)
	cost := uint64(maxCost)
	if told := details.ActualCost(); told != nil {
		cost = *told
	}
	spent.Add(cost)
	if err != nil {
		return false, err
	}
	holds, ok := result.(types.Bool)
	if !ok {
		return false, errBool
	}
	return bool(holds), nil
}

// excuse says why the expression has no result. What CEL says may quote the objects: nothing of it, for a Secret.
func (p *program) excuse(err error, objects ...*unstructured.Unstructured) string {
	verdict := "cannot be evaluated"
	if missing(err) {
		verdict = "does not hold yet"
	}
	text := fmt.Sprintf("the expression %q %s", p.text, verdict)
	if slices.ContainsFunc(objects, isSecret) {
		return text
	}
	return text + ": " + err.Error()
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// missing says whether the error is a field that is not there. CEL has no type for it, only these words.
func missing(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no such key") || strings.Contains(text, "no such attribute")
}

// shorten makes an expression fit for a message.
func shorten(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
