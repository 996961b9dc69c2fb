package function

import (
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// put writes the value, or a part of it, into a field.
func (r *run) put(o *object, at location, options fieldOptions, value *yaml.Node) error {
	n := at.node
	if options.Delimiter != "" {
		if n.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return o.fail(at.path, errors.New("is no text that a delimiter could part"))
		}
		whole := splice(n.Value, value.Value, options.Delimiter, options.Index)
		if isNull(n) {
			whole = value.Value
		}
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: tagString, Value: whole}
	}
	if n.Kind == yaml.ScalarNode && value.Kind == yaml.ScalarNode {
		return r.putScalar(o, at, value)
	}
	if sameNode(n, value) {
		return nil
	}
	if err := r.room.put(n, value); err != nil {
		return o.fail(at.path, err)
	}
	made := copyNode(value)
	n.Kind, n.Tag, n.Value, n.Content, n.Style = made.Kind, made.Tag, made.Value, made.Content, made.Style
	r.changed++
	return nil
}

// putScalar keeps what kind of value the field has, if it can: a number in a field of strings is put in quotes, and a string that
// reads as a number is one in a field of numbers.
func (r *run) putScalar(o *object, at location, value *yaml.Node) error {
	n := at.node
	tag := n.ShortTag()
	switch {
	case isNull(n):
		tag = value.ShortTag()
	case tag == tagString || resolved(value.Value) == tag:
	case tag == tagFloat && resolved(value.Value) == tagInt:
		tag = tagInt
	default:
		tag = value.ShortTag()
	}
	if !isNull(n) && n.Value == value.Value && n.ShortTag() == tag {
		return nil
	}
	if tag == tagString {
		return r.putString(o, at, value.Value)
	}
	if err := r.room.take(int64(len(value.Value)) - int64(len(n.Value))); err != nil {
		return o.fail(at.path, err)
	}
	n.Value, n.Tag, n.Style = value.Value, tag, 0
	r.changed++
	return nil
}

func (r *run) putString(o *object, at location, value string) error {
	if isNull(at.node) {
		// A null is written in no style that a string could have.
		at.node.Style = 0
	}
	return r.replaceText(o, at.node, at.path, value)
}

// splice puts the value in the place of the part that the index counts, before the first part if it is negative, and behind the
// last if it is beyond. What is there already is not put there again.
func splice(whole, value, delimiter string, index int) string {
	parts, added := strings.Split(whole, delimiter), strings.Split(value, delimiter)
	has := func(from int) bool {
		return from >= 0 && from+len(added) <= len(parts) && slices.Equal(parts[from:from+len(added)], added)
	}
	switch {
	case index < 0 && !has(0):
		parts = slices.Concat(added, parts)
	case index >= len(parts) && !has(len(parts)-len(added)):
		parts = append(parts, added...)
	case index >= 0 && index < len(parts) && !has(index):
		parts = slices.Replace(parts, index, index+1, added...)
	}
	return strings.Join(parts, delimiter)
}
