package view

import (
	"cmp"
	"fmt"
	"slices"
)

// The size of a graph's boxes, and of the gaps between them, in pixels.
const (
	BoxWidth, BoxHeight  = 190, 46
	columnGap, rowGap    = 32, 12
	margin               = 8
	firstKept, leastKept = 64, 1
)

// Graph is a tree in layers from left to right: what comes of a box stands right of it, and what it depends on left of it.
type Graph struct {
	Boxes []Box
	// Edges are first those of the tree, and then those that depend.
	Edges         []Edge
	Width, Height int
}

// Box is a node, and where its upper left corner is.
type Box struct {
	*Node

	X, Y int
}

// Edge leads from a box's right side to the left side of what comes of it, or depends on it.
type Edge struct {
	X1, Y1, X2, Y2 int
	// Depends says that the second one depends on the first. Where it does not stand left of it, the edge leads from left side to left side.
	Depends bool
}

// Path is the edge as SVG draws it.
func (e Edge) Path() string {
	if e.X1 < e.X2 {
		return fmt.Sprintf("M%d %dL%d %d", e.X1, e.Y1, e.X2, e.Y2)
	}
	bow := min(e.X1, e.X2) - columnGap/2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", e.X1, e.Y1, bow, e.Y1, bow, e.Y2, e.X2, e.Y2)
}

// NewGraph lays a tree out with at most limit boxes: what is well goes together by kind, and so does what is left when that
// is not enough, kind by kind and state by state. What is not well is the last to lose its own box. What something depends on that the
// tree does not have gets a box of its own, as long as there is room.
func NewGraph(root *Node, limit int) Graph {
	// What is deeper has no box in any case.
	root = root.Cut(limit)
	beside := besides(root)
	beside = beside[:min(len(beside), limit/maxBeside)]
	root = root.within(limit - len(beside))
	g := Graph{}
	depth := 0
	if len(root.DependsOn) > 0 && len(beside) > 0 {
		depth = 1 // What it depends on stands left of it.
	}
	g.place(root, depth)
	g.depend(beside)
	g.Height = max(g.Height-rowGap+margin, 0)
	g.Width += margin
	return g
}

// maxBeside is which part of the boxes may be of what the tree does not have.
const maxBeside = 4

// identity tells nodes apart that stand for one object.
type identity struct{ group, kind, namespace, name string }

func (n *Node) identity() identity { return identity{n.Group, n.Kind, n.Namespace, n.Name} }

// besides are what nodes of the tree depend on that it does not have itself.
func besides(root *Node) (found []*Node) {
	known := map[identity]bool{}
	root.Walk(func(n *Node) { known[n.identity()] = true })
	root.Walk(func(n *Node) {
		for _, d := range n.DependsOn {
			if !known[d.identity()] {
				known[d.identity()] = true
				found = append(found, d)
			}
		}
	})
	return found
}

// depend draws who depends on whom. What stands beside the tree is put left of the first one that depends on it.
func (g *Graph) depend(beside []*Node) {
	at := map[identity]int{}
	for i, b := range g.Boxes {
		if _, known := at[b.identity()]; !known && b.Count == 0 {
			at[b.identity()] = i
		}
	}
	for i := range len(g.Boxes) {
		b := g.Boxes[i]
		for _, d := range b.DependsOn {
			j, known := at[d.identity()]
			if !known && slices.ContainsFunc(beside, func(n *Node) bool { return n.identity() == d.identity() }) {
				j = len(g.Boxes)
				at[d.identity()] = j
				g.beside(d, b)
			} else if !known {
				continue
			}
			first := g.Boxes[j]
			edge := Edge{first.X + BoxWidth, first.Y + BoxHeight/2, b.X, b.Y + BoxHeight/2, true}
			if edge.X1 >= edge.X2 {
				edge.X1 = first.X
			}
			g.Edges = append(g.Edges, edge)
		}
	}
}

// beside puts a box into the column left of the other, where that has room from its height on.
func (g *Graph) beside(n *Node, of Box) {
	made := Box{n, max(margin, of.X-BoxWidth-columnGap), of.Y}
	for again := true; again; {
		again = false
		for _, b := range g.Boxes {
			if b.X == made.X && max(b.Y-made.Y, made.Y-b.Y) < BoxHeight+rowGap {
				made.Y, again = b.Y+BoxHeight+rowGap, true
			}
		}
	}
	g.Boxes = append(g.Boxes, made)
	g.Height = max(g.Height, made.Y+BoxHeight+rowGap)
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
		g.Edges = append(g.Edges, Edge{X1: x + BoxWidth, Y1: y + BoxHeight/2, X2: x + BoxWidth + columnGap, Y2: height + BoxHeight/2})
	}
	return y
}

// within is the tree with no more than limit nodes.
func (n *Node) within(limit int) *Node {
	if folded, _ := n.folded(n.dependents()); folded.nodes() <= limit {
		return folded
	}
	folded := n.Folded()
	for kept := firstKept; folded.nodes() > limit; kept /= 2 {
		folded = n.gathered(kept)
		if kept <= leastKept {
			return folded.trimmed(limit)
		}
	}
	return folded
}

// dependents says which nodes of the tree depend on others, or have others depend on them.
func (n *Node) dependents() func(*Node) bool {
	known := map[identity]bool{}
	n.Walk(func(n *Node) {
		for _, d := range n.DependsOn {
			known[d.identity()], known[n.identity()] = true, true
		}
	})
	return func(n *Node) bool { return known[n.identity()] }
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
