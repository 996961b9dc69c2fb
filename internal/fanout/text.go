package fanout

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"sluice.dev/sluice/internal/expression"
)

// The names that expressions may use.
const (
	repoDefault    = "repoDefault"
	packageDefault = "packageDefault"
	upstream       = "upstream"
	repository     = "repository"
	target         = "target"
)

// maxCost bounds one evaluation. A text is replaced in, split and joined before that is counted: from the texts that this lets an
// expression have, a call makes some megabytes at most.
const maxCost = 1_000

// MaxText bounds each text that an expression gets to see, in bytes.
const MaxText = 1 << 10

// errText is an expression whose result is no text.
var errText = errors.New("the expression must be a text")

// text is one that stands in the template, or is worked out for each target.
type text struct {
	field   string
	fixed   string
	program *expression.Program
}

// of works it out. The error names the field.
func (t text) of(values map[string]any) (string, error) {
	if t.program == nil {
		return t.fixed, nil
	}
	result, _, err := t.program.Eval(values)
	if err != nil {
		return "", fmt.Errorf("%s: the expression %q: %w", t.field, t.program.Text, err)
	}
	made, ok := result.(types.String)
	if !ok {
		return "", fmt.Errorf("%s: the expression %q: %w", t.field, t.program.Text, errText)
	}
	return string(made), nil
}

// compiler compiles the expressions of a template, and notes what is wrong with them.
type compiler struct {
	env      *expression.Env
	problems []error
	// bytes of all expressions. Beyond maxBytes, none is compiled any more.
	bytes int
}

// text is what stands in the field, or its expression, which may use the names.
func (c *compiler) text(field, fixed, expr string, names ...string) text {
	if expr == "" {
		return text{field: field, fixed: fixed}
	}
	return c.expression(field+"Expr", expr, cel.StringType, names...)
}

// expression has a result of the type, and may use the names, or else all there are.
func (c *compiler) expression(field, expr string, result *cel.Type, names ...string) text {
	if len(names) == 0 {
		names = []string{repoDefault, packageDefault, upstream, repository, target}
	}
	if c.bytes += len(expr); c.bytes > maxBytes {
		return text{field: field}
	}
	program, err := c.env.Compile(expr, result, names...)
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", field, err))
	}
	return text{field: field, program: program}
}
