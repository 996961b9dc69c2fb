package cli

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/view"
)

// breath is the least time between two looks at a tree: of what changes in between, it is the last that counts.
const breath = 100 * time.Millisecond

// watchedTree is a tree that goes on below its end.
type watchedTree struct {
	table

	// problems says that what is and was well is not shown.
	problems bool
	last     map[treePlace]treeLine
}

// treePlace is what a line of a tree is about.
type treePlace struct {
	ref

	group string
}

// treeLine is how an object stands there.
type treeLine struct {
	text string
	well bool
}

// goOn shows the line of each object that comes to have another one, until it is interrupted, or the object itself is gone. The
// tree is grown anew from what the mirror has.
func (w *watchedTree) goOn(ctx context.Context, m *mirror, grow func() (grown, error)) error {
	for {
		select {
		case <-ctx.Done():
			return ended("watch the tree", context.Canceled)
		case err := <-m.ends:
			return ended("watch the tree", err)
		case <-m.news:
		}
		now, err := grow()
		if ctx.Err() != nil {
			continue
		}
		if now.root == nil {
			return err
		}
		if err := w.change(w.lines(now.root)); err != nil {
			return unprinted(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(breath):
		}
	}
}

// lines are those of all objects in the tree. Objects that are counted are told apart by their kind.
func (w *watchedTree) lines(root *view.Node) map[treePlace]treeLine {
	all := map[treePlace]treeLine{}
	var visit func(*view.Node)
	visit = func(n *view.Node) {
		at := treePlace{ref{n.Kind, n.Namespace, n.Name}, n.Group}
		all[at] = treeLine{strings.Join(w.words(n), "  "), n.Kind == "" || n.State == view.Ready}
		for _, under := range n.Under {
			visit(under)
		}
	}
	visit(root)
	return all
}

// change shows the lines that are others than before, in the order of their objects.
func (w *watchedTree) change(now map[treePlace]treeLine) error {
	var shown []string
	for _, at := range slices.SortedFunc(maps.Keys(now), byPlace) {
		was, known := w.last[at]
		if is := now[at]; !known || was.text != is.text {
			if !w.problems || !is.well || known && !was.well {
				shown = append(shown, is.text)
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(w.last), byPlace) {
		if _, there := now[at]; !there && at.Name != "" && (!w.problems || !w.last[at].well) {
			gone := view.Node{Group: at.group, Kind: at.Kind, Namespace: at.Namespace, Name: at.Name}
			shown = append(shown, strings.Join(w.words(&gone), "  ")+"  Gone")
		}
	}
	w.last = now
	if len(shown) == 0 {
		return nil
	}
	_, err := io.WriteString(w.out, strings.Join(shown, "\n")+"\n")
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

func byPlace(a, b treePlace) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.group, b.group), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
