package health

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/expression"
)

const (
	// maxCost bounds one evaluation, in CEL's units of work: a fifth of a second at worst. What CEL takes to count them
	// grows with their square.
	maxCost = 30_000
	// maxPrograms is how many expressions are remembered.
	maxPrograms = 1024
)

// errBool is an expression that cannot be true or false.
var errBool = errors.New("the expression must be true or false")

// Library compiles expressions and remembers them, so that all installations of a release share the work. Its methods
// may be called concurrently.
type Library struct {
	env      *expression.Env
	programs *lru.Cache[source, *program]
}

// source is what a program is compiled from. It uses dep and self, or else the fields of an object, whatever they are.
type source struct {
	text         string
	ofDependency bool
}

// program is a compiled expression.
type program struct{ *expression.Program }

// NewLibrary makes a Library. Expressions have what expression.New says.
func NewLibrary() (*Library, error) {
	env, err := expression.New(maxCost)
	if err != nil {
		return nil, err
	}
	programs, err := lru.New[source, *program](maxPrograms)
	if err != nil {
		return nil, fmt.Errorf("remember expressions: %w", err)
	}
	return &Library{env: env, programs: programs}, nil
}

// compile compiles the expression, or remembers that it did.
func (l *Library) compile(from source) (*program, error) {
	if known, ok := l.programs.Get(from); ok {
		return known, nil
	}
	var names []string
	if from.ofDependency {
		names = []string{"dep", "self"}
	}
	compiled, err := l.env.Compile(from.text, cel.BoolType, names...)
	if errors.Is(err, expression.ErrResult) {
		return nil, fmt.Errorf("%w: %w", errBool, err)
	}
	if err != nil {
		return nil, err
	}
	made := &program{compiled}
	l.programs.Add(from, made)
	return made, nil
}

// holds evaluates the expression, and adds to spent what that cost: all it may, if it was broken off. A name that the values
// lack is a field that is not there.
func (p *program) holds(values map[string]any, spent *atomic.Uint64) (bool, error) {
	result, cost, err := p.Eval(values)
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
	if expression.IsMissing(err) {
		verdict = "does not hold yet"
	}
	text := fmt.Sprintf("the expression %q %s", p.Text, verdict)
	if slices.ContainsFunc(objects, isSecret) {
		return text
	}
	return text + ": " + err.Error()
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}
