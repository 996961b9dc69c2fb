package function

import (
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// settle makes what there is say what is wanted. Whatever says so already stays as it is: comments, order and style with it. It
// counts the values that are new, another, or gone.
func (r *run) settle(have, want *yaml.Node) *yaml.Node {
	switch {
	case have.Kind != want.Kind:
	case have.Kind == yaml.MappingNode && hasPlainKeys(have) && hasPlainKeys(want):
		return r.settleMap(have, want)
	case have.Kind == yaml.SequenceNode:
		return r.settleList(have, want)
	case sameNode(have, want):
		return have
	}
	r.changed++
	made := *want
	made.HeadComment, made.LineComment, made.FootComment = have.HeadComment, have.LineComment, have.FootComment
	return &made
}

func hasPlainKeys(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Kind != yaml.ScalarNode {
			return false
		}
	}
	return true
}

// settleMap keeps the keys that are still wanted in their order, and puts new ones behind them.
func (r *run) settleMap(have, want *yaml.Node) *yaml.Node {
	wanted := map[string]*yaml.Node{}
	for i := 0; i+1 < len(want.Content); i += 2 {
		wanted[want.Content[i].Value] = want.Content[i+1]
	}
	content := make([]*yaml.Node, 0, len(want.Content))
	for i := 0; i+1 < len(have.Content); i += 2 {
		key := have.Content[i]
		value := wanted[key.Value]
		if value == nil {
			r.changed++
			continue
		}
		delete(wanted, key.Value)
		content = append(content, key, r.settle(have.Content[i+1], value))
	}
	for i := 0; i+1 < len(want.Content); i += 2 {
		if value := wanted[want.Content[i].Value]; value != nil {
			content = append(content, want.Content[i], value)
			r.changed++
		}
	}
	have.Content = content
	return have
}

// settleList finds for each element what it was before: the one of the same name, or else what stood in its place.
func (r *run) settleList(have, want *yaml.Node) *yaml.Node {
	named := map[string]*yaml.Node{}
	for _, element := range have.Content {
		if name := nameOf(element); name != "" {
			named[name] = element
		}
	}
	content := make([]*yaml.Node, 0, len(want.Content))
	for i, element := range want.Content {
		name, before := nameOf(element), (*yaml.Node)(nil)
		switch {
		case name != "":
			before = named[name]
			delete(named, name)
		case i < len(have.Content) && nameOf(have.Content[i]) == "":
			before = have.Content[i]
		}
		if before == nil {
			r.changed++
			content = append(content, element)
			continue
		}
		content = append(content, r.settle(before, element))
	}
	r.changed += max(0, len(have.Content)-len(want.Content))
	have.Content = content
	return have
}

// nameOf is what an element of a list is known by, empty for nothing.
func nameOf(element *yaml.Node) string { return kpt.Text(element, "name") }

// restore takes out of an item what says where its object stands, and puts back what the object itself says of that. There may be
// no object.
func restore(item, object *yaml.Node) {
	metadata := kpt.Lookup(item, "metadata")
	annotations := kpt.Lookup(metadata, "annotations")
	if annotations == nil || annotations.Kind != yaml.MappingNode {
		return
	}
	for _, key := range []string{atPath, atIndex, atPathOld, atIndexOld, atObjectKey} {
		removeKey(annotations, key)
		if said := kpt.Lookup(object, "metadata", "annotations", key); said != nil {
			annotations.Content = append(annotations.Content, newText(key), said)
		}
	}
	if len(annotations.Content) > 0 {
		return
	}
	removeKey(metadata, "annotations")
	if said := kpt.Lookup(object, "metadata", "annotations"); said != nil {
		metadata.Content = append(metadata.Content, newText("annotations"), said)
	}
	if len(metadata.Content) == 0 && kpt.Lookup(object, "metadata") == nil {
		removeKey(item, "metadata")
	}
}
