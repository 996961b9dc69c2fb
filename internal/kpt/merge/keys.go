package merge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// elements are those of the three lists.
type elements = lists[*yaml.Node]

// inferred are the fields that tell elements apart where no schema says so.
func inferred() []string { return []string{"name", "key", "id", "type", "conditionType"} }

const maxLabel = 80

// fieldKey is a key made of fields. All must be there, or have a fallback, but it is no key if all are missing.
func fieldKey(fields ...keyField) func(*yaml.Node) (string, string, bool) {
	return func(node *yaml.Node) (key, label string, ok bool) {
		if node.Kind != yaml.MappingNode {
			return "", "", false
		}
		keys, labels := []string{}, []string{}
		for _, field := range fields {
			value, text := kpt.Lookup(node, field.name), field.fallback
			switch {
			case value == nil && text == "" && len(fields) == 1:
				return "", "", false
			case value == nil:
			case value.Kind != yaml.ScalarNode || isNull(value):
				return "", "", false
			default:
				text, ok = value.Value, true
			}
			keys = append(keys, strconv.Quote(text))
			labels = append(labels, field.name+"="+text)
		}
		return strings.Join(keys, ","), stepTo(strings.Join(labels, ",")), ok
	}
}

// objectKey is what tells objects apart, in a list of them.
func objectKey(node *yaml.Node) (key, label string, ok bool) {
	object := &kpt.Resource{Node: yaml.NewRNode(node)}
	id := object.ID()
	return fmt.Sprintf("%q", [...]string{id.Group, id.Kind, id.Namespace, id.Name}), stepTo(id.String()), !isOther(object) && id.Name != ""
}

// stepTo is how a path writes the way to an element.
func stepTo(label string) string { return "[" + printable.Line(label, maxLabel) + "]" }

// wholeKey is all that the element says.
func (m *merger) wholeKey(node *yaml.Node) (key, label string, ok bool) {
	return strconv.Itoa(m.of[node].says), "", true
}

// allMaps tells whether every element is a map that can be looked into.
func allMaps(all *elements) bool {
	for _, list := range all {
		for _, element := range list {
			if element.Kind != yaml.MappingNode {
				return false
			}
		}
	}
	return true
}

// isSet tells whether no side has a value twice, and values alone.
func (m *merger) isSet(all *elements) bool {
	for _, list := range all {
		seen := map[int]bool{}
		for _, element := range list {
			says := m.of[element].says
			if element.Kind != yaml.ScalarNode || seen[says] {
				return false
			}
			seen[says] = true
		}
	}
	return true
}

// keyedRounds are the ways to match the elements by their fields, none if there is no such way. A field that tells all elements
// apart on all three sides finds also those again whose key by the schema was changed.
func (m *merger) keyedRounds(all *elements, known *shape) []round[*yaml.Node] {
	if !allMaps(all) {
		return nil
	}
	rounds := []round[*yaml.Node]{}
	if known != nil && len(known.keys) > 0 {
		if key := fieldKey(known.keys...); unique(all, key) {
			rounds = append(rounds, round[*yaml.Node]{key: key})
		}
	}
	if len(rounds) == 0 && unique(all, objectKey) {
		return append(rounds, round[*yaml.Node]{key: objectKey})
	}
	for _, name := range inferred() {
		if known != nil && slices.ContainsFunc(known.keys, func(key keyField) bool { return len(known.keys) == 1 && key.name == name }) {
			continue
		}
		if key := fieldKey(keyField{name: name}); unique(all, key) {
			return append(rounds, round[*yaml.Node]{key: key, changed: len(rounds) > 0})
		}
	}
	return rounds
}

// unique tells whether every element has the key, and no two of one side the same.
func unique(all *elements, key func(*yaml.Node) (string, string, bool)) bool {
	for _, list := range all {
		seen := map[string]bool{}
		for _, element := range list {
			found, _, ok := key(element)
			if !ok || seen[found] {
				return false
			}
			seen[found] = true
		}
	}
	return true
}
