package function

import (
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// respell gives what is wanted the spelling of what there is, where both mean the same: 0x10 and 16, 1.0 and 1, a date and its
// text.
func respell(have, wanted *yaml.Node) {
	switch {
	case have.Kind != wanted.Kind:
	case have.Kind == yaml.ScalarNode:
		if meaning(have) == meaning(wanted) {
			wanted.Value, wanted.Tag, wanted.Style = have.Value, have.Tag, have.Style
		}
	case have.Kind == yaml.SequenceNode:
		// Where elements were added or removed, their spelling may change.
		for i := range min(len(have.Content), len(wanted.Content)) {
			respell(have.Content[i], wanted.Content[i])
		}
	case have.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(wanted.Content); i += 2 {
			if value := kpt.Lookup(have, wanted.Content[i].Value); value != nil {
				respell(value, wanted.Content[i+1])
			}
		}
	}
}

// meaning is what a single value is to Kubernetes.
func meaning(n *yaml.Node) string {
	tag := n.ShortTag()
	switch tag {
	case tagNull:
		return tagNull
	case tagBool:
		return tagBool + strconv.FormatBool(n.Value == "true" || n.Value == "True" || n.Value == "TRUE")
	case tagInt, tagFloat:
		var whole int64
		if n.Decode(&whole) == nil {
			return tagInt + strconv.FormatInt(whole, 10)
		}
		var number float64
		if n.Decode(&number) == nil {
			return tagFloat + strconv.FormatFloat(number, 'g', -1, 64)
		}
	}
	return tagString + n.Value
}

// quote puts those texts in quotes that somebody would read as something else.
func quote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == tagString && n.Style == 0 && needsQuotes(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, below := range n.Content {
		quote(below)
	}
}
