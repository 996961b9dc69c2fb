package view_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
		var all []*view.Node
		root.Walk(func(n *view.Node) { all = append(all, n) })
		plain := view.NewGraph(root, limit)
		if len(plain.Edges) != len(plain.Boxes)-1 {
			t.Fatalf("seed %d: %d boxes, %d edges", seed, len(plain.Boxes), len(plain.Edges))
		}
		for _, n := range all {
			switch d := all[rand.New(rand.NewPCG(seed, 2)).IntN(len(all))]; {
			case seed%3 == 0 && len(n.Under) == 0:
				n.DependsOn = append(n.DependsOn, d.Alone())
			case seed%3 == 1:
				n.DependsOn = append(n.DependsOn, &view.Node{Kind: "Beside", Name: n.Name})
			}
		}
		graph := view.NewGraph(root, limit)
		if len(graph.Boxes) > limit {
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

// TestGraphOfWhatDepends: a dashed edge leads to it from what it depends on, which is in the tree, or beside it; what is well does not lose
// its box by that it depends on something, as long as there is room.
func TestGraphOfWhatDepends(t *testing.T) {
	t.Parallel()
	db, cache := &view.Node{Kind: "ModuleInstallation", Name: "db", State: view.Ready}, &view.Node{Kind: "ModuleInstallation", Name: "cache", State: view.Failed}
	app := &view.Node{Kind: "ModuleInstallation", Name: "app", State: view.Ready, DependsOn: []*view.Node{db.Alone(), cache}}
	root := &view.Node{Kind: "ModuleTemplate", Name: "foo", State: view.Ready, Under: []*view.Node{app, db}}
	for range 20 {
		root.Under = append(root.Under, &view.Node{Kind: "ModuleInstallation", Name: "other", State: view.Ready})
	}
	for _, tc := range []struct {
		root  *view.Node
		limit int
		want  []string
	}{
		{root, 150, []string{"db - app, bent", "cache - app"}},
		{root, 3, nil},
		{app, 150, []string{"db - app", "cache - app"}},
		{&view.Node{Kind: "ModuleTemplate", Name: "foo", State: view.Ready, Under: []*view.Node{app}}, 150, []string{"db - app", "cache - app"}},
	} {
		graph := view.NewGraph(tc.root, tc.limit)
		at := map[[2]int]string{}
		for i, box := range graph.Boxes {
			for _, other := range graph.Boxes[:i] {
				if box.X == other.X && max(box.Y-other.Y, other.Y-box.Y) < view.BoxHeight {
					t.Errorf("%s and %s are on each other", box.Name, other.Name)
				}
			}
			if box.X < 0 || box.X+view.BoxWidth > graph.Width || box.Y+view.BoxHeight > graph.Height {
				t.Errorf("%s is outside of the drawing", box.Name)
			}
			at[[2]int{box.X, box.Y + view.BoxHeight/2}], at[[2]int{box.X + view.BoxWidth, box.Y + view.BoxHeight/2}] = box.Name, box.Name
		}
		var got []string
		for _, edge := range graph.Edges {
			if !edge.Depends {
				continue
			}
			told := at[[2]int{edge.X1, edge.Y1}] + " - " + at[[2]int{edge.X2, edge.Y2}]
			if strings.Contains(edge.Path(), "C") {
				told += ", bent"
			}
			got = append(got, told)
		}
		if !slices.Equal(got, tc.want) || len(graph.Boxes) > tc.limit {
			t.Errorf("%s within %d: got %q, want %q; %d boxes", tc.root.Name, tc.limit, got, tc.want, len(graph.Boxes))
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
