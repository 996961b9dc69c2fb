package view

import (
	"cmp"
	"slices"
)

// The size of a graph's boxes, and of the gaps between them, in pixels.
const (
	BoxWidth, BoxHeight  = 190, 46
	columnGap, rowGap    = 32, 12
	margin               = 8
	firstKept, leastKept = 64, 1
)

// Graph is a tree in layers from left to right: what comes of a box stands right of it.
type Graph struct {
	Boxes         []Box
	Edges         []Edge
	Width, Height int
}

// Box is a node, and where its upper left corner is.
type Box struct {
	*Node

	X, Y int
}

// Edge leads from a box's right side to the left side of what comes of it.
type Edge struct{ X1, Y1, X2, Y2 int }

// NewGraph lays a tree out with at most limit boxes: what is well goes together by kind, and so does what is left when that
// is not enough, kind by kind and state by state. What is not well is the last to lose its own box.
func NewGraph(root *Node, limit int) Graph {
	// What is deeper has no box in any case.
	root = root.Cut(limit).within(limit)
	g := Graph{}
	g.place(root, 0)
	g.Height = max(g.Height-rowGap+margin, 0)
	g.Width += margin
	return g
}

// place puts the node and all under it, and gives the height at which the node stands.
func (g *Graph) place(n *Node, depth int) int {
	x := margin + depth*(BoxWidth+columnGap)
	at := len(g.Boxes)
	g.Boxes = append(g.Boxes, Box{Node: n, X: x})
	g.Width = max(g.Width, x+BoxWidth)
	var heights []int
	for _, u := range n.Under {
		heights = append(heights, g.place(u, depth+1))
	}
	y := 0
	if len(heights) == 0 {
		y = max(g.Height, margin)
		g.Height = y + BoxHeight + rowGap
	} else {
		y = (heights[0] + heights[len(heights)-1]) / 2
	}
	g.Boxes[at].Y = y
	for _, height := range heights {
		g.Edges = append(g.Edges, Edge{x + BoxWidth, y + BoxHeight/2, x + BoxWidth + columnGap, height + BoxHeight/2})
	}
	return y
}

// within is the tree with no more than limit nodes.
func (n *Node) within(limit int) *Node {
	folded := n.Folded()
	for kept := firstKept; folded.nodes() > limit; kept /= 2 {
		folded = n.gathered(kept)
		if kept <= leastKept {
			return folded.trimmed(limit)
		}
	}
	return folded
}

func (n *Node) nodes() int {
	count := 1
	for _, u := range n.Under {
		count += u.nodes()
	}
	return count
}

// gathered is the node with so many of those under it as they are, what is worst first; the others go together where they are of one
// kind and state.
func (n *Node) gathered(kept int) *Node {
	told := *n
	told.Under = nil
	alike := map[[3]string]*Node{}
	worst := slices.Clone(n.Under)
	slices.SortStableFunc(worst, func(a, b *Node) int { return cmp.Compare(a.rank(), b.rank()) })
	for i, u := range worst {
		if i < kept && !u.IsWell() {
			told.Under = append(told.Under, u.gathered(kept))
			continue
		}
		key := [3]string{u.Group, u.Kind, string(u.worst())}
		first := alike[key]
		switch {
		case u.Kind == "":
			told.Under = append(told.Under, u.gathered(kept))
		case first == nil:
			alike[key] = u.gathered(kept)
			told.Under = append(told.Under, alike[key])
		default:
			*first = Node{Group: u.Group, Kind: u.Kind, Count: first.size() + u.size(), State: u.worst()}
		}
	}
	return &told
}

// worst is the state of the node, or of what is under it, that is looked for first.
func (n *Node) worst() State {
	state := n.State
	for _, u := range n.Under {
		if under := u.worst(); rankOf(under) < rankOf(state) {
			state = under
		}
	}
	return state
}

func (n *Node) rank() int { return rankOf(n.worst()) }

// rankOf is how early a state is looked for. One that nobody can judge comes just before what is well.
func rankOf(state State) int {
	if at := slices.Index(States(), state); at >= 0 {
		return 2 * at
	}
	return 2*slices.Index(States(), Ready) - 1
}

// trimmed is the node without the last of those under it that are too many, which are counted.
func (n *Node) trimmed(limit int) *Node {
	told := *n
	told.Under = nil
	left, lost := limit-1, 0
	for i, u := range n.Under {
		need := u.nodes()
		reserved := 0
		if i < len(n.Under)-1 || lost > 0 {
			reserved = 1 // For what counts the others.
		}
		switch {
		case need+reserved <= left:
			told.Under = append(told.Under, u)
			left -= need
		case len(n.Under) == 1 && left > 1:
			told.Under = append(told.Under, u.trimmed(left))
		default:
			lost += u.size()
		}
	}
	if lost > 0 {
		told.Under = append(told.Under, &Node{Kind: "More", Count: lost})
	}
	return &told
}

// First is the node with so many nodes in all at the most, in the order in which they are drawn, and how many are left out.
func (n *Node) First(limit int) (kept *Node, left int) {
	told := *n
	told.Under = nil
	limit--
	for _, u := range n.Under {
		if limit <= 0 {
			left += u.nodes()
			continue
		}
		child, lost := u.First(limit)
		told.Under = append(told.Under, child)
		limit -= child.nodes()
		left += lost
	}
	return &told, left
}
