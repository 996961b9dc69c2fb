package yamltext

import (
	"cmp"

	"go.yaml.in/yaml/v3"
)

// adopt is what is wanted, with the comments of what there is where nothing else is wanted.
func adopt(have *item, want *twig) *twig {
	if have.node.Kind != want.node.Kind || len(want.kids) == 0 {
		return want
	}
	adopted := *want
	defer adopted.count()
	adopted.kids = append([]twig(nil), want.kids...)
	if want.node.Kind == yaml.MappingNode {
		a := alignMapping(have.kids, want.kids)
		for j, i := range a.from {
			if i != unmatched {
				adopted.kids[2*j] = comments(&have.kids[2*i], &want.kids[2*j])
				adopted.kids[2*j+1] = comments(&have.kids[2*i+1], &want.kids[2*j+1])
			}
		}
		return &adopted
	}
	a := alignSequence(have.kids, want.kids)
	for j, i := range a.from {
		if i != unmatched {
			adopted.kids[j] = comments(&have.kids[i], &want.kids[j])
		}
	}
	return &adopted
}

// comments is adopt for a node that brings its own comments along.
func comments(have *item, want *twig) twig {
	adopted := *adopt(have, want)
	node := *want.node
	node.HeadComment = commentText(cmp.Or(node.HeadComment, have.node.HeadComment))
	node.LineComment = commentText(cmp.Or(node.LineComment, have.node.LineComment))
	node.FootComment = commentText(cmp.Or(node.FootComment, have.node.FootComment))
	adopted.node = &node
	return adopted
}
