package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// treeAnswer is an object between what it is made from and what is made of it.
type treeAnswer struct {
	Object ref `json:"object"`
	// Root is nil where only trouble is asked for, and none was found.
	Root *view.Node `json:"root"`
}

// gardener is one call of tree.
type gardener struct {
	*base

	shown           answers
	problems, watch bool
	depth           int
}

func treeCommand(b *base) *cobra.Command {
	g := &gardener{base: b}
	command := &cobra.Command{
		Use:   "tree [KIND] NAME | KIND/NAME",
		Short: "Show where an object comes from, and all that is made of it, with its health",
		Example: `  sluice tree redis -n team-a
  sluice tree redis --problems
  sluice tree redis -w
  sluice tree gitrepository/app`,
		ValidArgsFunction: b.complete(kindNames()),
	}
	g.shown = bindAnswers(command)
	command.Flags().BoolVar(&g.problems, "problems", false, "Show only what is not well, and the way to it.")
	command.Flags().IntVar(&g.depth, "depth", -1, "Show so many levels under the object. -1 shows all.")
	command.Flags().BoolVarP(&g.watch, "watch", "w", false, "Go on with each object whose line changes, until interrupted.")
	return b.on(command, g.run)
}

func (g *gardener) run(ctx context.Context, args []string) error {
	k, name, err := one(args)
	if err != nil {
		return err
	}
	if g.watch && !isText(g.shown.output) {
		return usage("--watch shows lines", "leave out -o")
	}
	there, seen := g.session, (*mirror)(nil)
	if g.watch {
		alive, stop := context.WithCancel(ctx)
		defer stop()
		there, seen = g.mirrored(alive)
	}
	grow := func() (grown, error) {
		made, err := there.grow(ctx, k, name)
		if made.root != nil && g.depth >= 0 {
			*made.focus = *made.focus.Cut(g.depth)
		}
		return made, err
	}
	made, lacking := grow()
	if made.root == nil {
		return lacking
	}
	told := g.told(made, lacking == nil)
	err = g.shown.show(g.Out, "Tree", told, told.print)
	if g.watch && err == nil {
		if lacking != nil {
			// Whoever looks on is not told at the end alone.
			fmt.Fprintln(g.ErrOut, lacking)
		}
		w := &watchedTree{table: newTable(g.Out, g.shown.wide()), problems: g.problems}
		w.last = w.lines(made.root)
		return w.goOn(ctx, seen, grow)
	}
	return errors.Join(err, lacking)
}

// told is what of the tree is asked for. Whole says that all could be read.
func (g *gardener) told(made grown, whole bool) treeAnswer {
	told := treeAnswer{made.object, made.root}
	if !g.problems {
		return told
	}
	told.Root = told.Root.Troubled()
	switch {
	case told.Root != nil:
	case whole:
		fmt.Fprintln(g.ErrOut, "All is well.")
	default:
		fmt.Fprintln(g.ErrOut, "All that could be read is well.")
	}
	return told
}

// grown is a tree, and where in it the object is that was asked for.
type grown struct {
	object      ref
	root, focus *view.Node
	// road are the object and all that it takes from, of which the tree has the first of each as a node.
	road []*target
}

// grow makes the tree of an object. Beside the error stands what could be read; nothing where the object itself could not.
func (s *session) grow(ctx context.Context, k kind, name string) (grown, error) {
	t := newTarget(k, s.namespace, name)
	var err error
	if t.obj, err = s.named(ctx, k, name); err != nil {
		return grown{}, err
	}
	r := newRoad(s, t)
	r.forgives = true
	if _, err := r.visit(ctx, t); err != nil {
		return grown{}, err
	}
	focus := nodeOf(k, t.obj)
	lacking := r.lacking
	if k.resource == kinds()[0].resource {
		lacking = append(lacking, s.hangMembers(ctx, focus, t.obj), s.hangDependencies(ctx, focus, t.obj))
	} else {
		lacking = append(lacking, s.hangTakers(ctx, focus))
	}
	return grown{refOf(t.obj), above(t, focus, map[*target]bool{}), focus, slices.Concat(r.layers...)}, errors.Join(lacking...)
}

// nodeOf is the node of one of our objects, with what a table shows of it.
func nodeOf(k kind, obj *unstructured.Unstructured) *view.Node {
	var notes []string
	for _, c := range k.columns {
		if value := c.value(obj); value != "" && !c.wide {
			notes = append(notes, strings.ToLower(c.title)+" "+shorten(value))
		}
	}
	return view.NodeOf(obj, strings.Join(notes, ", "))
}

// above puts the node under what its object takes from first, and that under what it takes from. What else it takes from is
// named beside it.
func above(t *target, node *view.Node, visited map[*target]bool) *view.Node {
	visited[t] = true
	if len(t.from) == 0 || visited[t.from[0]] {
		if address := addressOf(t); address != "" {
			return &view.Node{Name: address, Under: []*view.Node{node}}
		}
		return node
	}
	for _, other := range t.from[1:] {
		node.Note = strings.TrimPrefix(node.Note+", also from "+other.String(), ", ")
	}
	parent := nodeOf(t.from[0].kind, t.from[0].obj)
	parent.Under = []*view.Node{node}
	return above(t.from[0], parent, visited)
}

// addressOf is where a source reads, without a login that stands in it.
func addressOf(t *target) string {
	for _, field := range []string{"url", "endpoint"} {
		if raw, _, _ := unstructured.NestedString(t.obj.Object, "spec", field); raw != "" && t.isSource {
			return credential.CleanURL(raw)
		}
	}
	return ""
}

// hangMembers puts what an installation has applied under it.
func (s *session) hangMembers(ctx context.Context, node *view.Node, obj *unstructured.Unstructured) error {
	var installation modulesv1.ModuleInstallation
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &installation); err != nil {
		return &CommandError{Code: ExitUnanswered, What: "read " + refOf(obj).String(), Why: err.Error()}
	}
	checker, unjudged := s.checkerOf(ctx, &installation)
	members, lacking := s.members(ctx, &installation, checker)
	slices.SortFunc(members, byName)
	node.Under = members
	return errors.Join(unjudged, lacking)
}

func byName(a, b *view.Node) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// hangTakers puts our objects that take from the node under it, and those that take from these: one LIST a kind.
func (s *session) hangTakers(ctx context.Context, node *view.Node) error {
	takers, known := map[ref][]*view.Node{}, map[ref]*view.Node{}
	depending := map[*view.Node][]*view.Node{}
	var lacking []error
	for _, k := range kinds() {
		if k.origins == nil {
			continue
		}
		found, err := s.everywhere(ctx, k)
		if err != nil {
			lacking = append(lacking, err)
		}
		for i := range found {
			taker := nodeOf(k, &found[i])
			known[refOf(&found[i])] = taker
			if first := dependencies(&found[i]); len(first) > 0 {
				depending[taker] = first
			}
			for _, o := range k.origins(&found[i]) {
				from := ref{o.kind, cmp.Or(o.namespace, found[i].GetNamespace()), o.name}
				if all := takers[from]; len(all) == 0 || all[len(all)-1] != taker {
					takers[from] = append(all, taker)
				}
			}
		}
	}
	depend(depending, known)
	hang(node, takers, map[*view.Node]bool{})
	return errors.Join(lacking...)
}

// depend notes with each object what it depends on, as it was read if it was.
func depend(depending map[*view.Node][]*view.Node, known map[ref]*view.Node) {
	for taker, all := range depending {
		for _, one := range all {
			if read := known[ref{one.Kind, one.Namespace, one.Name}]; read != nil {
				one = read.Alone()
			}
			taker.DependsOn = append(taker.DependsOn, one)
		}
	}
}

// everywhere lists a kind's objects in all namespaces, or in the session's where more is not allowed: then the error says so.
func (s *session) everywhere(ctx context.Context, k kind) ([]unstructured.Unstructured, error) {
	found, err := s.listAll(ctx, k)
	if err == nil {
		return found, nil
	}
	told := explain("list "+k.resource+" in all namespaces", err, "sluice-view")
	if told.general {
		return nil, told
	}
	if found, err = s.listAll(ctx, k, client.InNamespace(s.namespace)); err == nil {
		told.Help = append(told.Help, "those of namespace "+s.namespace+" are shown")
	}
	return found, told
}

// hang puts takers under the node, but for those that it hangs on itself. What hangs on one is told once, where it is met first:
// as many ways as there are lead to what takes from many, and those of rings have no end. On the way down, met is true.
func hang(node *view.Node, takers map[ref][]*view.Node, met map[*view.Node]bool) {
	met[node] = true
	for _, taker := range takers[ref{node.Kind, node.Namespace, node.Name}] {
		switch above, known := met[taker]; {
		case above:
		case known:
			again := *taker
			again.Under = nil
			node.Under = append(node.Under, &again)
		default:
			node.Under = append(node.Under, taker)
			hang(taker, takers, met)
		}
	}
	met[node] = false
}

// print draws the tree, with objects that are alike in one line unless all is to be told.
func (a treeAnswer) print(t table) error {
	root := a.Root
	if root == nil {
		return nil
	}
	if !t.wide {
		root = root.Folded()
	}
	var lines strings.Builder
	t.draw(&lines, root, "", "")
	_, err := io.WriteString(t.out, lines.String())
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

// maxIndent is by how many levels a line is indented. Of what is deeper the last ones are shown.
const maxIndent = 40

// draw writes a node's line after its lead, and those of what is under it after theirs.
func (t table) draw(lines *strings.Builder, n *view.Node, lead, below string) {
	lines.WriteString(lead + strings.Join(t.words(n), "  ") + "\n")
	branch, trunk, last, none, deeper := "├─ ", "│  ", "└─ ", "   ", "…"
	if t.plain {
		branch, trunk, last, deeper = "|- ", "|  ", "`- ", "~"
	}
	width := maxIndent * len(none)
	if columns := []rune(below); len(columns) > width {
		below = deeper + string(columns[len(columns)-width:])
	}
	for i, u := range n.Under {
		if i == len(n.Under)-1 {
			branch, trunk = last, none
		}
		t.draw(lines, u, below+branch, below+trunk)
	}
}

// words are what a node's line has.
func (t table) words(n *view.Node) []string {
	name := ref{n.Kind, n.Namespace, n.Name}.String()
	if n.Kind == "" {
		name = n.Name
	}
	if n.Count > 0 {
		name = fmt.Sprintf("%s ×%d", n.Kind, n.Count)
		if t.plain {
			name = fmt.Sprintf("%s x%d", n.Kind, n.Count)
		}
	}
	words := []string{printable.Line(name, maxProblem)}
	for _, word := range []string{n.Note, n.Message} {
		if word != "" {
			words = append(words, printable.Line(word, maxMessage))
		}
	}
	for _, d := range n.DependsOn {
		word := "depends on " + ref{d.Kind, d.Namespace, d.Name}.String()
		if told := cmp.Or(string(d.State), d.Message); told != "" {
			word += " (" + told + ")"
		}
		words = append(words, printable.Line(word, maxMessage))
	}
	if n.State != "" {
		words = slices.Insert(words, 1, t.paint(t.state(n.State)))
	}
	return words
}
