package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// ErrTooMuch says that a check takes more steps than it may: a schema can ask for more of them than anybody has time for.
var ErrTooMuch = errors.New("checking takes too many steps")

// Finding is something in an object that its schema does not allow. It never has a value of the object.
type Finding struct {
	// Path leads to the field, with places in lists as numbers.
	Path []string
	// Problem is what is wrong with it.
	Problem string
}

// Check bounds what all checks that it is used for take.
type Check struct {
	// Strict makes a field that the schema does not know a finding.
	Strict bool
	// Steps are how many values may be looked at still, a value once for each part of a schema.
	Steps int
	// Findings are how many are wanted at most, of one object.
	Findings int

	// patterns are those that were compiled on the way.
	patterns map[pattern]matcher
}

// Object checks an object of a kind that the document has. The error is ErrTooMuch, or the context's.
func (c *Check) Object(ctx context.Context, d *Document, kind GroupVersionKind, object *yaml.Node) ([]Finding, error) {
	v := &visit{ctx: ctx, check: c, document: d}
	v.value(d.kinds[kind], object, nil)
	if c.Strict {
		v.known([]*Schema{d.kinds[kind]}, object, nil)
	}
	return v.findings, v.err
}

// visit is one object on its way through its schema. The first error ends it.
type visit struct {
	ctx      context.Context //nolint:containedctx // It lives no longer than the call that it is of.
	check    *Check
	document *Document
	findings []Finding
	err      error
	depth    int
}

// maxDepth bounds how deep schemas lead.
const maxDepth = 200

// enough tells whether to go on.
func (v *visit) enough() bool {
	v.check.Steps--
	switch {
	case v.err != nil, len(v.findings) >= v.check.Findings:
		return true
	case v.check.Steps < 0 || v.depth > maxDepth:
		v.err = ErrTooMuch
	case v.check.Steps%1024 == 0:
		v.err = v.ctx.Err()
	}
	return v.err != nil
}

// find notes something that is wrong.
func (v *visit) find(path []string, format string, args ...any) {
	v.findings = append(v.findings, Finding{Path: slices.Clone(path), Problem: fmt.Sprintf(format, args...)})
}

// value checks n against all that the schema says, but for the names of fields.
func (v *visit) value(s *Schema, n *yaml.Node, path []string) {
	if s == nil || n == nil || v.enough() || isNull(n) {
		return // What is null is as if it were not there; who needs it finds that out.
	}
	v.depth++
	defer func() { v.depth-- }()
	if s.Ref != "" {
		v.value(v.document.follow(s.Ref), n, path)
	}
	switch got := kindOf(n); {
	case s.IntOrString || s.Format == "int-or-string":
		if got != "integer" && got != "string" {
			v.find(path, "is %s, and has to be an integer or a string", article(got))
			return
		}
	case s.Type != "" && s.Type != got && (s.Type != "number" || got != "integer"):
		v.find(path, "is %s, and has to be %s%s", article(got), article(s.Type), hint(s, n))
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		v.fields(s, n, path)
	case yaml.SequenceNode:
		v.elements(s, n, path)
	default:
		v.scalar(s, n, path)
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(one any) bool { return equals(one, n) }) {
		v.find(path, "is none of %s", list(s.Enum))
	}
	v.combined(s, n, path)
}

// fields checks a map.
func (v *visit) fields(s *Schema, n *yaml.Node, path []string) {
	there := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		there[key] = !isNull(value)
		v.value(s.property(key), value, append(path, key))
	}
	for _, required := range s.Required {
		if !there[required] {
			v.find(append(path, required), "is missing")
		}
	}
	v.count(len(n.Content)/2, s.MinProperties, s.MaxProperties, path, "fields")
}

// property is the schema of a field, nil where there is none.
func (s *Schema) property(key string) *Schema {
	if property := s.Properties[key]; property != nil || s.AdditionalProperties == nil {
		return property
	}
	return s.AdditionalProperties.schema
}

// elements checks a list.
func (v *visit) elements(s *Schema, n *yaml.Node, path []string) {
	for i, element := range n.Content {
		v.value(s.Items, element, append(path, strconv.Itoa(i)))
	}
	v.count(len(n.Content), s.MinItems, s.MaxItems, path, "elements")
}

// count checks how many there are.
func (v *visit) count(got int, least, most *int, path []string, what string) {
	switch {
	case least != nil && got < *least:
		v.find(path, "has %d %s, and at least %d are needed", got, what, *least)
	case most != nil && got > *most:
		v.find(path, "has %d %s, and %d are allowed", got, what, *most)
	}
}

// combined checks n against schemas of which all, some, one or none have to be true.
func (v *visit) combined(s *Schema, n *yaml.Node, path []string) {
	for _, all := range s.AllOf {
		v.value(all, n, path)
	}
	if len(s.AnyOf) > 0 && v.fitting(s.AnyOf, n, path) == 0 {
		v.find(path, "is none of what is allowed: it fits no schema of anyOf")
	}
	if fitting := v.fitting(s.OneOf, n, path); len(s.OneOf) > 0 && fitting != 1 {
		v.find(path, "fits %d schemas of oneOf, and has to fit one", fitting)
	}
	if s.Not != nil && v.fitting([]*Schema{s.Not}, n, path) == 1 {
		v.find(path, "is what is not allowed")
	}
}

// fitting counts the schemas that n fits.
func (v *visit) fitting(schemas []*Schema, n *yaml.Node, path []string) int {
	count := 0
	for _, s := range schemas {
		if v.err != nil {
			return count
		}
		inner := &visit{ctx: v.ctx, check: &Check{Steps: v.check.Steps, Findings: 1, patterns: v.check.patterns}, document: v.document, depth: v.depth + 1}
		inner.value(s, n, path)
		v.check.Steps, v.check.patterns, v.err = inner.check.Steps, inner.check.patterns, inner.err
		if len(inner.findings) == 0 {
			count++
		}
	}
	return count
}
