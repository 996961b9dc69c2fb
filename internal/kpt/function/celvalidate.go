package function

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"sluice.dev/sluice/internal/expression"
	"sluice.dev/sluice/internal/memory"
)

// celValidate fails for objects that an expression is not true of. It changes nothing.
func celValidate(ctx context.Context, r *run) error {
	read := celRules{}
	if err := r.readCEL(&read, "CELValidate", func(data map[string]string) {
		read.Rules = []celRule{{
			Match: data["match"], Expression: data["expression"], Message: data["message"], MessageExpression: data["messageExpression"],
		}}
	}, "match", "expression", "message", "messageExpression"); err != nil {
		return err
	}
	if len(read.Rules) == 0 {
		return errors.New("there are no rules")
	}
	c, err := newCalculator(ctx, r, read.Params)
	if err != nil {
		return err
	}
	defer c.end()
	v := validator{calculator: c}
	for i := range read.Rules {
		if err := v.check(&read.Rules[i]); err != nil {
			return inField(fmt.Sprintf("rules[%d]", i), err)
		}
	}
	return v.verdict()
}

// celRules is the function's own kind.
type celRules struct {
	head   `yaml:",inline"`
	Params map[string]any `yaml:"params"`
	Rules  []celRule      `yaml:"rules"`
}

// celRule is an expression that has to be true, of the objects that it is for.
type celRule struct {
	Match             string `yaml:"match"`
	Expression        string `yaml:"expression"`
	Message           string `yaml:"message"`
	MessageExpression string `yaml:"messageExpression"`
}

// maxProblems is how many broken rules are told.
const maxProblems = 20

// validator finds out which rules are broken.
type validator struct {
	*calculator
	problems []string
	first    *Error
	count    int
}

// check looks at all objects; once at the package, if the rule speaks of no single object.
func (v *validator) check(rule *celRule) error {
	match, err := v.condition("match", rule.Match)
	if err != nil {
		return err
	}
	expr, err := v.compile("expression", rule.Expression, cel.BoolType)
	if err != nil {
		return err
	}
	said := rule.Message
	var message *formula
	switch {
	case rule.Message != "" && rule.MessageExpression != "":
		return errors.New("there are both a message and a messageExpression")
	case rule.MessageExpression != "":
		if message, err = v.compile("messageExpression", rule.MessageExpression, cel.StringType); err != nil {
			return err
		}
	case said == "":
		said = "is not true: " + expression.Shorten(rule.Expression)
	}
	objects := v.objects()
	if !expr.speaksOf(celObject) && (match == nil || !match.speaksOf(celObject)) {
		objects = []*object{nil}
	}
	for _, o := range objects {
		if err := v.judge(o, match, expr, message, said); err != nil {
			return err
		}
	}
	return nil
}

// judge looks at one object. What an expression fails of is a problem of that object alone; what it takes, of all.
func (v *validator) judge(o *object, match, expr, message *formula, said string) error {
	broken, err := v.breaks(o, match, expr)
	if err == nil && broken && message != nil {
		said, err = v.text(message, o)
	}
	switch {
	case errors.Is(err, errCost) || errors.Is(err, memory.ErrShortage) || errors.Is(err, memory.ErrBudget) || v.ctx.Err() != nil:
		return err
	case err != nil:
		v.problem(o, err.Error())
	case broken:
		v.problem(o, said)
	}
	return nil
}

// breaks tells whether the rule is for the object, and not true of it.
func (v *validator) breaks(o *object, match, expr *formula) (bool, error) {
	applies, err := v.holds(match, o)
	if err != nil || !applies {
		return false, err
	}
	good, err := v.holds(expr, o)
	return !good, err
}

// text is what an expression says.
func (v *validator) text(f *formula, o *object) (string, error) {
	result, err := v.value(f, o, nil)
	if err != nil {
		return "", err
	}
	text, ok := result.(types.String)
	if !ok {
		return "", fmt.Errorf("the expression %q: %w: no text", f.program.Text, expression.ErrResult)
	}
	return string(text), nil
}

func (v *validator) problem(o *object, said string) {
	v.count++
	one := &Error{Err: errors.New(said)}
	if o != nil {
		one.Resource, one.File = o.resource.ID().String(), o.resource.File
	}
	if v.first == nil {
		v.first = one
	}
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, one.Error())
	}
}

// verdict is the error, if there is any problem.
func (v *validator) verdict() error {
	switch v.count {
	case 0:
		return nil
	case 1:
		return v.first
	default:
		return fmt.Errorf("%d problems: %s", v.count, strings.Join(v.problems, "; "))
	}
}
