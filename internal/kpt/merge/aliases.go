package merge

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxNodes bounds what one document becomes when its aliases are written out.
const maxNodes = 1 << 18

// plain is a document without aliases: each is a copy of what it stands for, so that a change of one place changes no other.
type plain struct {
	root *yaml.Node
	// stood are the copies, and the aliases that stood in their places.
	stood map[*yaml.Node]*yaml.Node
	nodes int
}

// newPlain leaves the document as it is where it has no aliases.
func newPlain(root *yaml.Node) (*plain, error) {
	p := &plain{root: root, stood: map[*yaml.Node]*yaml.Node{}}
	has, err := hasAlias(root, 0)
	if err != nil || !has {
		return p, err
	}
	p.root, err = p.write(root, 0, false)
	return p, err
}

func hasAlias(node *yaml.Node, depth int) (bool, error) {
	if depth > maxDepth {
		return false, fmt.Errorf("%w: more than %d values stand in each other", ErrTooComplex, maxDepth)
	}
	if node.Kind == yaml.AliasNode {
		return true, nil
	}
	for _, child := range node.Content {
		if has, err := hasAlias(child, depth+1); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// write copies the node. Within a copy of an anchored value there are no anchors and no comments: they stay where they are.
func (p *plain) write(node *yaml.Node, depth int, within bool) (*yaml.Node, error) {
	p.nodes++
	if depth > maxDepth || p.nodes > maxNodes {
		return nil, fmt.Errorf("%w: aliases stand for more than %d values, or for themselves", ErrTooComplex, maxNodes)
	}
	if node.Kind == yaml.AliasNode {
		fresh, err := p.write(node.Alias, depth+1, true)
		if err == nil {
			fresh.HeadComment, fresh.LineComment, fresh.FootComment = node.HeadComment, node.LineComment, node.FootComment
			p.stood[fresh] = node
		}
		return fresh, err
	}
	fresh := *node
	fresh.Content = make([]*yaml.Node, 0, len(node.Content))
	if within {
		fresh.Anchor, fresh.HeadComment, fresh.LineComment, fresh.FootComment = "", "", "", ""
	}
	for _, child := range node.Content {
		written, err := p.write(child, depth+1, within)
		if err != nil {
			return nil, err
		}
		fresh.Content = append(fresh.Content, written)
	}
	return &fresh, nil
}

// fold puts aliases back where the document still says what they stand for: after the anchor, and the same.
func (p *plain) fold(root *yaml.Node) (*yaml.Node, error) {
	if len(p.stood) == 0 {
		return root, nil
	}
	written := newForms()
	if _, err := written.add(root, 0); err != nil {
		return nil, err
	}
	anchors := map[string]*yaml.Node{}
	var visit func(*yaml.Node) *yaml.Node
	visit = func(node *yaml.Node) *yaml.Node {
		if alias, stood := p.stood[node]; stood && written.same(anchors[alias.Value], node) {
			folded := *alias
			folded.Alias = anchors[alias.Value]
			folded.HeadComment, folded.LineComment, folded.FootComment = node.HeadComment, node.LineComment, node.FootComment
			return &folded
		}
		for i, child := range node.Content {
			node.Content[i] = visit(child)
		}
		if node.Anchor != "" {
			anchors[node.Anchor] = node
		}
		return node
	}
	return visit(root), nil
}
