package schema

import (
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// known looks for fields that none of the schemas knows which n has to fit, whole or in part.
func (v *visit) known(schemas []*Schema, n *yaml.Node, path []string) {
	if n == nil || v.enough() {
		return
	}
	v.depth++
	defer func() { v.depth-- }()
	all := v.parts(schemas, nil)
	switch n.Kind {
	case yaml.MappingNode:
		v.knownFields(all, n, path)
	case yaml.SequenceNode:
		below := gather(all, func(s *Schema) *Schema { return s.Items })
		for i, element := range n.Content {
			v.known(below, element, append(path, strconv.Itoa(i)))
		}
	default: // A scalar has no fields.
	}
}

// knownFields looks at the fields of a map.
func (v *visit) knownFields(all []*Schema, n *yaml.Node, path []string) {
	closed := isClosed(all)
	embedded := slices.ContainsFunc(all, func(s *Schema) bool { return s.Embedded })
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		below := gather(all, func(s *Schema) *Schema { return s.property(key) })
		isHead := embedded && (key == "apiVersion" || key == "kind" || key == "metadata")
		switch {
		case len(below) > 0:
			v.known(below, n.Content[i+1], append(path, key))
		case closed && !isHead:
			v.find(append(path, key), "is not known")
		}
	}
}

// gather is what the schemas say of something below them, as far as they do.
func gather(all []*Schema, of func(*Schema) *Schema) []*Schema {
	below := []*Schema{}
	for _, s := range all {
		if one := of(s); one != nil {
			below = append(below, one)
		}
	}
	return below
}

// isClosed tells whether other fields than those that the schemas name are unknown: they name some, and do not speak of others.
func isClosed(all []*Schema) bool {
	named := false
	for _, s := range all {
		if s.Preserve || s.AdditionalProperties != nil && (s.AdditionalProperties.allows || s.AdditionalProperties.schema != nil) {
			return false
		}
		named = named || len(s.Properties) > 0
	}
	return named
}

// parts are the schemas, and those that they consist of, each once.
func (v *visit) parts(schemas, found []*Schema) []*Schema {
	for _, s := range schemas {
		if s == nil || slices.Contains(found, s) || v.enough() {
			continue
		}
		found = append(found, s)
		if s.Ref != "" {
			found = v.parts([]*Schema{v.document.follow(s.Ref)}, found)
		}
		for _, more := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf} {
			found = v.parts(more, found)
		}
	}
	return found
}
