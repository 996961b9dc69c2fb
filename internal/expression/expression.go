// Package expression compiles and evaluates expressions in CEL that somebody else wrote, with a bound on what they take.
// It does not know what they are about.
package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"

	"sluice.dev/sluice/internal/printable"
)

const (
	// maxLength of an expression, in bytes.
	maxLength = 4096
	// maxWords is how much is said of what is wrong, in bytes.
	maxWords = 240
	// maxVariables is how many names an expression may use.
	maxVariables = 64
)

// ErrResult is a result of another type than the expression is to have.
var ErrResult = errors.New("the expression has a result of another type")

var errEmpty = errors.New("the expression is empty")

// Env says what expressions may use. It is safe for concurrent use.
type Env struct {
	base *cel.Env
	most uint64
	// declared are those with the names that callers give, which are few. An Env is larger than most programs.
	declared map[string]*cel.Env
	mu       sync.Mutex
}

// New makes an Env. Expressions have CEL's standard functions and macros, but for regular expressions, optional fields
// (status.?phase), and what else is given. Extensions of CEL do work, and make texts, before their cost is counted: who gives
// some has to bound what they get. The most that one evaluation may cost is in CEL's units of work, of which a value or ten bytes of text that a
// call looks at are one.
func New(most uint64, more ...cel.EnvOption) (*Env, error) {
	base, err := cel.NewEnv(append([]cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(maxLength), cel.CustomTypeAdapter(adapter{}),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	return &Env{base: base, most: most, declared: map[string]*cel.Env{}}, nil
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	// Text is the expression, fit for a message.
	Text string
	// Names are the variables that it may use.
	Names []string

	program cel.Program
	most    uint64
}

// Compile compiles an expression that may use the variables, or whatever names it uses where there are none, and has a
// result of the type, or of any where that is nil. Its errors are one line each.
func (e *Env) Compile(text string, result *cel.Type, names ...string) (*Program, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes; at most %d are allowed", len(text), maxLength)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errEmpty
	}
	made := &Program{Text: Shorten(text), Names: names, most: e.most}
	parsed, issues := e.base.Parse(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("parse %q: %s", made.Text, printable.Line(err.Error(), maxWords))
	}
	if err := refuse(parsed); err != nil {
		return nil, fmt.Errorf("compile %q: %w", made.Text, err)
	}
	declaring := e.declaring
	if names == nil {
		made.Names, declaring = variables(parsed), e.extended
	}
	if len(made.Names) > maxVariables {
		return nil, fmt.Errorf("the expression uses %d names; at most %d are allowed", len(made.Names), maxVariables)
	}
	env, err := declaring(made.Names)
	if err != nil {
		return nil, fmt.Errorf("compile %q: %s", made.Text, printable.Line(err.Error(), maxWords))
	}
	if err := e.check(env, made, parsed, result); err != nil {
		return nil, err
	}
	return made, nil
}

// declaring is the Env in which expressions may use the names.
func (e *Env) declaring(names []string) (*cel.Env, error) {
	key := strings.Join(names, " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.declared[key]; known != nil {
		return known, nil
	}
	env, err := e.extended(names)
	if err == nil {
		e.declared[key] = env
	}
	return env, err
}

func (e *Env) extended(names []string) (*cel.Env, error) {
	declared := make([]cel.EnvOption, 0, len(names))
	for _, name := range names {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	return e.base.Extend(declared...)
}

// check finds out whether the expression fits together, and makes the program of it.
func (e *Env) check(env *cel.Env, made *Program, parsed *cel.Ast, result *cel.Type) (err error) {
	failed := func(err error) error {
		return fmt.Errorf("compile %q: %s", made.Text, printable.Line(err.Error(), maxWords))
	}
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return failed(err)
	}
	if kind := checked.OutputType(); result != nil && !kind.IsExactType(result) && !kind.IsExactType(cel.DynType) {
		return fmt.Errorf("compile %q: %w: %s in place of %s", made.Text, ErrResult, kind, result)
	}
	made.program, err = env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostTracking(work{e.most}), cel.CostLimit(e.most))
	if err != nil {
		return failed(err)
	}
	return nil
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

// Eval evaluates the expression, and tells what that cost: all it may, if it was broken off. A name that the values lack is an
// empty object, so that has() is false and an access fails, as for any other field.
func (p *Program) Eval(values map[string]any) (result ref.Val, cost uint64, err error) {
	given := make(map[string]any, len(p.Names))
	for _, name := range p.Names {
		value, there := values[name]
		if !there {
			value = map[string]any{}
		}
		given[name] = value
	}
	result, details, err := p.program.Eval(given)
	if told := details.ActualCost(); told != nil {
		return result, *told, err
	}
	return result, p.most, err
}

// IsMissing says whether the error is a field that is not there. CEL has no type for it, only these words.
func IsMissing(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no such key") || strings.Contains(text, "no such attribute")
}

// Shorten makes an expression fit for a message.
func Shorten(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
