// Package health judges whether an object does what it is there for, from what the object says of itself.
// It does not know where the object comes from, nor who waits for it.
package health

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/transport"
)

// Status is the health of an object.
type Status string

const (
	// Current is an object that is as its spec wants it.
	Current Status = "Current"
	// InProgress is an object on its way; waiting helps.
	InProgress Status = "InProgress"
	// Failed is an object that waiting does not help.
	Failed Status = "Failed"
	// Unknown is an object that cannot be judged, as the message says.
	Unknown Status = "Unknown"
)

// Expression tells the health of one kind's objects with CEL, over the object's own fields. Failed is asked first, then
// InProgress, then Current; an object of which none holds is in progress. A field that is not there makes an expression
// not hold. It has the fields of the API's HealthExpression, which converts into it.
type Expression struct {
	APIVersion string
	Kind       string
	Current    string
	InProgress string
	Failed     string
}

// maxExpressions is how many kinds may have expressions.
const maxExpressions = 256

// Checker judges objects: by the expressions for their kind where there are some, else by the conventions of status. It
// is immutable. The zero value has no expressions.
type Checker struct {
	kinds map[schema.GroupVersionKind]rules
	// budget is charged, if there is one.
	budget *Budget
}

// rules are the compiled expressions for a kind; nil is one that was not given.
type rules struct {
	failed, inProgress, current *program
}

// Checker makes a Checker. The error names the expression that does not compile, or the kind that has expressions
// twice; only an edit helps.
func (l *Library) Checker(expressions []Expression) (*Checker, error) {
	if len(expressions) > maxExpressions {
		return nil, fmt.Errorf("%d health expressions; at most %d are allowed", len(expressions), maxExpressions)
	}
	checker := &Checker{kinds: make(map[schema.GroupVersionKind]rules, len(expressions))}
	for _, expression := range expressions {
		version, err := schema.ParseGroupVersion(expression.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("health of kind %q: parse apiVersion %q: %w", expression.Kind, expression.APIVersion, err)
		}
		gvk := version.WithKind(expression.Kind)
		if _, twice := checker.kinds[gvk]; twice {
			return nil, fmt.Errorf("health of kind %q in %q is told twice", gvk.Kind, version)
		}
		if checker.kinds[gvk], err = l.rules(expression); err != nil {
			return nil, fmt.Errorf("health of kind %q in %q: %w", gvk.Kind, version, err)
		}
	}
	return checker, nil
}

func (l *Library) rules(expression Expression) (compiled rules, err error) {
	if expression.Current == "" {
		return rules{}, fmt.Errorf("current: %w", errEmpty)
	}
	for _, one := range []struct {
		field, text string
		into        **program
	}{
		{"failed", expression.Failed, &compiled.failed},
		{"inProgress", expression.InProgress, &compiled.inProgress},
		{"current", expression.Current, &compiled.current},
	} {
		if one.text == "" {
			continue
		}
		if *one.into, err = l.compile(one.text, ofObject); err != nil {
			return rules{}, fmt.Errorf("%s: %w", one.field, err)
		}
	}
	return compiled, nil
}

// Within is the Checker, but each evaluation is charged to the budget.
func (c *Checker) Within(budget *Budget) *Checker { return &Checker{kinds: c.kinds, budget: budget} }

// NeedsObject says whether the health of the kind is in the object; else an object that exists and is not being
// deleted is current.
func (c *Checker) NeedsObject(gvk schema.GroupVersionKind) bool {
	if _, told := c.kinds[gvk]; told {
		return true
	}
	return !plain(gvk.GroupKind())
}

// Check judges the object. The message is one bounded, printable line, and quotes nothing of a Secret.
func (c *Checker) Check(object *unstructured.Unstructured) (Status, string) {
	status, message := c.check(object)
	return status, transport.Printable(message)
}

func (c *Checker) check(object *unstructured.Unstructured) (Status, string) {
	compiled, told := c.kinds[object.GroupVersionKind()]
	if !told {
		return conventional(object)
	}
	if status, message := unsettled(object); status != "" {
		return status, message
	}
	for _, one := range []struct {
		program *program
		status  Status
		message string
	}{
		{compiled.failed, Failed, "the expression for failed holds"},
		{compiled.inProgress, InProgress, "the expression for inProgress holds"},
		{compiled.current, Current, "the expression for current holds"},
	} {
		if one.program == nil {
			continue
		}
		answer := one.program.holds(object.Object, c.budget)
		switch {
		case answer.err != nil && !answer.missing:
			return Unknown, fmt.Sprintf("the expression %q cannot be evaluated%s", one.program.text, detail(answer, object))
		case answer.holds:
			return one.status, one.message + because(object)
		case answer.missing && one.status == Current:
			return InProgress, fmt.Sprintf("the expression %q does not hold yet%s", one.program.text, detail(answer, object))
		}
	}
	return InProgress, fmt.Sprintf("the expression %q does not hold yet", compiled.current.text) + because(object)
}

// detail is what CEL says about an evaluation, which may quote the object: nothing, for a Secret.
func detail(answer answer, objects ...*unstructured.Unstructured) string {
	if slices.ContainsFunc(objects, isSecret) {
		return ""
	}
	return ": " + answer.err.Error()
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}
