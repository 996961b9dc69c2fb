package yamltext

import "go.yaml.in/yaml/v3"

// defined is the document in which every alias has its anchor before it. Where that is not so, because what bore the anchor has
// gone, has moved or has been made anew, the alias becomes what it stands for. A document without aliases is returned as it is,
// and no node is changed.
func defined(want *yaml.Node) *yaml.Node {
	d := definer{names: map[*yaml.Node]string{}, seen: map[*yaml.Node]bool{}, current: map[string]*yaml.Node{}}
	d.collect(want, 0)
	if len(d.names) == 0 {
		return want
	}
	return d.node(want, 0)
}

// definer goes through a document in its order.
type definer struct {
	// names are the anchors of what aliases stand for.
	names map[*yaml.Node]string
	// seen says of those which have been met, and current what an anchor stands for by now.
	seen    map[*yaml.Node]bool
	current map[string]*yaml.Node
	// copies counts what was written in place of aliases that cannot be.
	copies int
}

// most is how many aliases are written out. More can only be meant to fill memory.
const most = 1000

// collect finds what aliases stand for. What has an anchor keeps it.
func (d *definer) collect(node *yaml.Node, depth int) {
	if node == nil || depth > deepest {
		return
	}
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		d.names[node.Alias] = node.Value
		if node.Alias.Anchor != "" {
			d.names[node.Alias] = node.Alias.Anchor
		}
	}
	for _, child := range node.Content {
		d.collect(child, depth+1)
	}
}

// node is the node with all aliases below it in order.
func (d *definer) node(node *yaml.Node, depth int) *yaml.Node {
	if node == nil || depth > deepest {
		return node
	}
	if node.Kind == yaml.AliasNode {
		return d.alias(node, depth)
	}
	same := node
	if name, ok := d.names[node]; ok {
		d.seen[node] = true
		if node.Anchor == "" {
			named := *node
			named.Anchor = name
			same = &named
		}
	}
	if same.Anchor != "" {
		d.current[same.Anchor] = node
	}
	for i, child := range node.Content {
		kept := d.node(child, depth+1)
		if kept == child {
			continue
		}
		if same == node {
			copied := *node
			same = &copied
		}
		if &same.Content[0] == &node.Content[0] {
			same.Content = append([]*yaml.Node(nil), node.Content...)
		}
		same.Content[i] = kept
	}
	return same
}

// alias is the alias, or what it stands for if its anchor stands for something else.
func (d *definer) alias(node *yaml.Node, depth int) *yaml.Node {
	name := node.Value
	if node.Alias == nil {
		return node
	}
	if d.seen[node.Alias] {
		name = d.names[node.Alias]
	}
	current, ok := d.current[name]
	switch {
	case !ok:
		// The first alias becomes the anchor of the others.
		target := *node.Alias
		target.Anchor = name
		target.HeadComment, target.LineComment, target.FootComment = node.HeadComment, node.LineComment, node.FootComment
		d.current[name] = node.Alias
		return d.node(&target, depth+1)
	case d.seen[node.Alias] && current != node.Alias && d.copies < most:
		d.copies++
		target := *node.Alias
		target.Anchor = ""
		return d.node(&target, depth+1)
	case name != node.Value:
		named := *node
		named.Value = name
		return &named
	}
	return node
}
