package view_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/internal/view"
)

// grownFrom is a tree whose shape and states come from the seed.
func grownFrom(random *rand.Rand, depth, width int) *view.Node {
	states := append(view.States(), "")
	node := &view.Node{Kind: fmt.Sprintf("Kind%d", random.IntN(4)), Name: fmt.Sprint(random.Uint64()), State: states[random.IntN(len(states))]}
	for range random.IntN(width + 1) {
		if depth > 0 {
			node.Under = append(node.Under, grownFrom(random, depth-1, width))
		}
	}
	return node
}

// TestGraph: boxes stand within the drawing and not on each other, edges lead from one box to another, and there are never too many.
func TestGraph(t *testing.T) {
	t.Parallel()
	const limit = 150
	for seed := range uint64(200) {
		root := grownFrom(rand.New(rand.NewPCG(seed, 1)), 4, 9)
		graph := view.NewGraph(root, limit)
		if len(graph.Boxes) > limit || len(graph.Edges) != len(graph.Boxes)-1 {
			t.Fatalf("seed %d: %d boxes, %d edges", seed, len(graph.Boxes), len(graph.Edges))
		}
		taken := map[int][]int{}
		for _, box := range graph.Boxes {
			if box.X < 0 || box.Y < 0 || box.X+view.BoxWidth > graph.Width || box.Y+view.BoxHeight > graph.Height {
				t.Fatalf("seed %d: a box at %d, %d is outside of %d × %d", seed, box.X, box.Y, graph.Width, graph.Height)
			}
			for _, y := range taken[box.X] {
				if max(y-box.Y, box.Y-y) < view.BoxHeight {
					t.Fatalf("seed %d: boxes at %d, %d and %d are on each other", seed, box.X, y, box.Y)
				}
			}
			taken[box.X] = append(taken[box.X], box.Y)
		}
	}
}

// TestGraphOfManyMembers: what is not well keeps its box, and the others are counted.
func TestGraphOfManyMembers(t *testing.T) {
	t.Parallel()
	root := &view.Node{Kind: "ModuleInstallation", Name: "big", State: view.Failed}
	for i := range 7500 {
		member := &view.Node{Kind: fmt.Sprintf("Kind%d", i%12), Name: fmt.Sprint("m", i), State: view.Ready}
		if i%500 == 0 {
			member.State = view.Failed
		}
		root.Under = append(root.Under, member)
	}
	graph := view.NewGraph(root, 150)
	counted, failed := 0, 0
	for _, box := range graph.Boxes[1:] {
		counted += max(1, box.Count)
		if box.State == view.Failed && box.Count == 0 {
			failed++
		}
	}
	if len(graph.Boxes) > 150 || counted != 7500 || failed != 15 {
		t.Errorf("%d boxes for %d members, of which %d of 15 that have failed", len(graph.Boxes), counted, failed)
	}
	for _, member := range root.Under {
		member.State = view.Failed
	}
	worse := view.NewGraph(root, 150)
	counted = 0
	for _, box := range worse.Boxes[1:] {
		counted += max(1, box.Count)
	}
	if len(worse.Boxes) > 150 || counted != 7500 {
		t.Errorf("where all have failed: %d boxes for %d members", len(worse.Boxes), counted)
	}
}

// TestFirst: as many as are asked for, and the others are counted.
func TestFirst(t *testing.T) {
	t.Parallel()
	root := grownFrom(rand.New(rand.NewPCG(7, 1)), 5, 6)
	all := 0
	root.Walk(func(*view.Node) { all++ })
	for _, limit := range []int{1, 2, 10, all - 1, all, all + 1} {
		kept, left := root.First(limit)
		shown := 0
		kept.Walk(func(*view.Node) { shown++ })
		if shown != min(limit, all) || shown+left != all {
			t.Errorf("%d of %d: %d are shown, and %d left out", limit, all, shown, left)
		}
	}
}

// TestGraphOfALongWay: boxes are bounded also where each has but one under it.
func TestGraphOfALongWay(t *testing.T) {
	t.Parallel()
	for _, state := range []view.State{view.Ready, view.Failed} {
		root := &view.Node{Kind: "Repository", Name: "first", State: state}
		for at, i := root, 0; i < 20000; i++ {
			at.Under = []*view.Node{{Kind: "Repository", Name: fmt.Sprint(i), State: state}}
			at = at.Under[0]
		}
		if got := view.NewGraph(root, 150); len(got.Boxes) > 150 || got.Boxes[len(got.Boxes)-1].Kind != "More" {
			t.Errorf("%s: %d boxes, the last of them %+v", state, len(got.Boxes), got.Boxes[len(got.Boxes)-1].Node)
		}
	}
}
