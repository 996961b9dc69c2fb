package function

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// hasAlias tells whether something in n is written elsewhere, or merged into what is there.
func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Tag == yaml.MergeTag || slices.ContainsFunc(n.Content, hasAlias)
}

// twice is a key that a map has two times, and where. Readers do not agree which of them counts, so that whoever changes one
// may have changed nothing.
func twice(n *yaml.Node, path []string) []string {
	seen := map[string]bool{}
	for i, below := range n.Content {
		step := strconv.Itoa(i)
		if n.Kind == yaml.MappingNode {
			if step = n.Content[i&^1].Value; i%2 == 0 {
				if seen[step] && below.Kind == yaml.ScalarNode {
					return join(path, step)
				}
				seen[step] = true
				continue
			}
		}
		if found := twice(below, append(path, step)); found != nil {
			return found
		}
	}
	return nil
}

// expand copies n with all that its aliases stand for. How much that is, is known before anything is copied: ten lines can stand
// for more than a memory holds.
func expand(n *yaml.Node, room *room) (*yaml.Node, error) {
	total, err := expandedSize(n, map[*yaml.Node]extent{})
	if err != nil {
		return nil, err
	}
	if err := room.hold(total.bytes-size(n), total.values-count(n)); err != nil {
		return nil, fmt.Errorf("what its aliases stand for: %w", err)
	}
	made := yaml.NewRNode(yaml.CopyYNode(n))
	if err := made.DeAnchor(); err != nil {
		return nil, fmt.Errorf("read its aliases: %w", err)
	}
	return made.YNode(), nil
}

// hugeSize is more than there is room for anywhere.
const hugeSize = 1 << 40

var errAliasInItself = errors.New("an alias stands for something that it is part of")

// extent is how much there is of something; a negative one marks what is being counted.
type extent struct{ bytes, values int64 }

// expandedSize counts what known does not have yet.
func expandedSize(n *yaml.Node, known map[*yaml.Node]extent) (extent, error) {
	if counted, found := known[n]; found {
		if counted.values < 0 {
			return extent{}, errAliasInItself
		}
		return counted, nil
	}
	known[n] = extent{values: -1}
	total := extent{int64(len(n.Value)) + 2, 1}
	below := n.Content
	if n.Kind == yaml.AliasNode {
		below = []*yaml.Node{n.Alias}
	}
	for _, one := range below {
		counted, err := expandedSize(one, known)
		if err != nil {
			return extent{}, err
		}
		total = extent{min(total.bytes+counted.bytes, hugeSize), min(total.values+counted.values, hugeSize)}
	}
	known[n] = total
	return total, nil
}
