// Package health judges whether an object does what it is there for, from what the object says of itself.
// It does not know where the object comes from, nor who waits for it.
package health

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/expression"
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

// maxExpressions is how many kinds may have expressions.
const maxExpressions = 256

// Checker judges objects: by the expressions for their kind where there are some, else by the conventions of status. Its
// methods may be called concurrently. The zero value has no expressions.
type Checker struct {
	kinds map[schema.GroupVersionKind][]rule
	spent atomic.Uint64
}

// rule is one of the expressions for a kind.
type rule struct {
	field   string
	status  Status // of an object for which it holds
	program *program
}

// Checker makes a Checker. Of a kind's expressions failed is asked first, then inProgress, then current; an object of which
// none holds is in progress. A field that is not there makes an expression not hold. The error names the expression that
// does not compile, or the kind that has expressions twice; only an edit helps.
func (l *Library) Checker(expressions []modulesv1.HealthExpression) (*Checker, error) {
	if len(expressions) > maxExpressions {
		return nil, fmt.Errorf("%d health expressions; at most %d are allowed", len(expressions), maxExpressions)
	}
	checker := &Checker{kinds: make(map[schema.GroupVersionKind][]rule, len(expressions))}
	for _, given := range expressions {
		version, err := schema.ParseGroupVersion(given.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("health of kind %q: parse apiVersion %q: %w", given.Kind, given.APIVersion, err)
		}
		gvk := version.WithKind(given.Kind)
		if _, twice := checker.kinds[gvk]; twice {
			return nil, fmt.Errorf("health of kind %q in %q is told twice", gvk.Kind, version)
		}
		if checker.kinds[gvk], err = l.rules(given); err != nil {
			return nil, fmt.Errorf("health of kind %q in %q: %w", gvk.Kind, version, err)
		}
	}
	return checker, nil
}

// rules are the compiled expressions for a kind, in the order in which they are asked.
func (l *Library) rules(given modulesv1.HealthExpression) (all []rule, err error) {
	for _, one := range []struct {
		rule

		text string
	}{
		{rule{field: "failed", status: Failed}, given.Failed},
		{rule{field: "inProgress", status: InProgress}, given.InProgress},
		{rule{field: "current", status: Current}, given.Current},
	} {
		if one.text == "" && one.status != Current {
			continue
		}
		if one.program, err = l.compile(source{text: one.text}); err != nil {
			return nil, fmt.Errorf("%s: %w", one.field, err)
		}
		all = append(all, one.rule)
	}
	return all, nil
}

// Spent is what evaluations cost so far, in CEL's units of work.
func (c *Checker) Spent() uint64 { return c.spent.Load() }

// NeedsObject says whether the health of the kind is in the object; else an object that exists and is not being
// deleted is current.
func (c *Checker) NeedsObject(gvk schema.GroupVersionKind) bool {
	_, told := c.kinds[gvk]
	return told || !plain(gvk.GroupKind())
}

// Check judges the object. The message is one bounded, printable line, and quotes nothing of a Secret.
func (c *Checker) Check(object *unstructured.Unstructured) (Status, string) {
	status, message := c.check(object)
	return status, transport.Printable(message)
}

func (c *Checker) check(object *unstructured.Unstructured) (Status, string) {
	rules, told := c.kinds[object.GroupVersionKind()]
	if !told {
		return conventional(object)
	}
	if status, message := unsettled(object); status != "" {
		return status, message
	}
	for _, one := range rules {
		holds, err := one.program.holds(object.Object, &c.spent)
		switch {
		case holds:
			return one.status, "the expression for " + one.field + " holds" + because(object)
		case err != nil && !expression.IsMissing(err):
			return Unknown, one.program.excuse(err, object)
		case err != nil && one.status == Current:
			return InProgress, one.program.excuse(err, object)
		}
	}
	return InProgress, fmt.Sprintf("the expression %q does not hold yet", rules[len(rules)-1].program.Text) + because(object)
}
