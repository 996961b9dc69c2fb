package function

import (
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// catalogueFill is pattern.fill as kpt's apply-setters does it: where a value can be read in several ways, a setter has as much of
// it as it can, the first before the others, and what is around the pattern makes no difference.
func (p pattern) catalogueFill(values map[string]string, current string) (string, error) {
	filled := p.with(values)
	if len(filled.names()) == 0 {
		return filled.text(), nil
	}
	expression := strings.Builder{}
	for _, t := range p {
		if t.name != "" {
			expression.WriteString("(.*)")
		}
		expression.WriteString(regexp.QuoteMeta(t.literal))
	}
	known := map[string]string{}
	if read, err := regexp.Compile(expression.String()); err == nil {
		if found := read.FindStringSubmatch(current); found != nil && !slices.Contains(found[1:], "") {
			i := 0
			for _, t := range p {
				if t.name != "" {
					i++
					known[t.name] = found[i]
				}
			}
		}
	}
	filled = filled.with(known)
	if missing := filled.names(); len(missing) > 0 {
		return "", errMissing(missing, p)
	}
	return filled.text(), nil
}

// catalogueType writes the value so that its text alone says what it is, unless it is in quotes.
func catalogueType(n *yaml.Node, value string) {
	n.Value = value
	switch {
	case value == "":
		n.Tag, n.Style = tagString, yaml.DoubleQuotedStyle
	case isQuoted(n):
		n.Tag = tagString
	default:
		n.Tag, n.Style = resolved(value), 0
	}
}
