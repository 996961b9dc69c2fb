package merge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

// rounds is how many random packages each property is tried with.
func rounds() uint64 {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return 5000
	}
	return 100
}

// dice makes random objects and changes them. Every word it makes is there once.
type dice struct {
	*rand.Rand
	side  string
	words int
}

func newDice(seed uint64) *dice { return &dice{Rand: rand.New(rand.NewPCG(seed, 7)), side: "b"} }

func (d *dice) word() string {
	d.words++
	return fmt.Sprintf("%s%dw", d.side, d.words)
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: text}
}

func mapOf(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap, Content: pairs}
}

func listOf(elements ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq, Content: elements}
}

// value is a random value. Maps in one list are all of one sort: with a name, with a port as a Service's, or without a key.
func (d *dice) value(depth int) *yaml.Node {
	switch d.IntN(6 - min(depth, 3)) {
	case 4:
		list := listOf()
		for range d.IntN(5) {
			list.Content = append(list.Content, scalar(d.word()))
		}
		return list
	case 3:
		list, named := listOf(), d.IntN(2) == 0
		for range d.IntN(4) {
			list.Content = append(list.Content, d.element(depth, named))
		}
		return list
	case 2, 5:
		value := mapOf()
		for range d.IntN(4) {
			value.Content = append(value.Content, scalar(d.word()), d.value(depth+1))
		}
		return value
	}
	return scalar(d.word())
}

func (d *dice) element(depth int, named bool) *yaml.Node {
	element := mapOf()
	if named {
		element.Content = append(element.Content, scalar("name"), scalar(d.word()))
	}
	for range 2 + d.IntN(3) {
		element.Content = append(element.Content, scalar(d.word()), d.value(depth+2))
	}
	return element
}

// object is a random one of a kind with a schema or without.
func (d *dice) object(i int) *yaml.Node {
	head := func(apiVersion, kind string, rest ...*yaml.Node) *yaml.Node {
		return mapOf(append([]*yaml.Node{
			scalar("apiVersion"), scalar(apiVersion), scalar("kind"), scalar(kind),
			scalar("metadata"), mapOf(scalar("name"), scalar(fmt.Sprintf("o%d", i)), scalar("labels"), mapOf(scalar(d.word()), scalar(d.word()))),
		}, rest...)...)
	}
	switch d.IntN(3) {
	case 0:
		containers := listOf()
		for range 1 + d.IntN(3) {
			containers.Content = append(containers.Content, d.element(2, true))
		}
		return head("apps/v1", "Deployment", scalar("spec"), mapOf(scalar("template"), mapOf(scalar("spec"), mapOf(scalar("containers"), containers))))
	case 1:
		return head("v1", "ConfigMap", scalar("data"), mapOf(scalar(d.word()), scalar(d.word()), scalar(d.word()), scalar(d.word())))
	}
	return head("example.com/v1", "Thing", scalar("spec"), mapOf(scalar(d.word()), d.value(0), scalar(d.word()), d.value(0), scalar(d.word()), d.value(0)))
}

// change changes a random place of the value. Only what stands under spec, data and labels is changed.
func (d *dice) change(node *yaml.Node, removals bool) {
	for steps := d.IntN(6); ; steps-- {
		below := []*yaml.Node{}
		for i, child := range node.Content {
			if child.Kind != yaml.ScalarNode && (node.Kind == yaml.SequenceNode || i%2 == 1) {
				below = append(below, child)
			}
		}
		if steps <= 0 && isFree(node) || len(below) == 0 {
			break
		}
		node = below[d.IntN(len(below))]
	}
	if !isFree(node) {
		return
	}
	size := len(node.Content)
	if node.Kind == yaml.MappingNode {
		size /= 2
	}
	at := 0
	if size > 0 {
		at = d.IntN(size)
	}
	what := d.IntN(4)
	if node.Kind == yaml.MappingNode {
		switch {
		case what == 0 && removals && size > 0 && node.Content[2*at].Value != "name":
			node.Content = slices.Delete(node.Content, 2*at, 2*at+2)
		case what == 1 && size > 0 && node.Content[2*at+1].Kind == yaml.ScalarNode && node.Content[2*at].Value != "name":
			node.Content[2*at+1] = scalar(d.word())
		default:
			node.Content = slices.Insert(node.Content, 2*at, scalar(d.word()), scalar(d.word()))
		}
		return
	}
	switch {
	case what == 0 && removals && size > 0:
		node.Content = slices.Delete(node.Content, at, at+1)
	case what == 1 && size > 0 && node.Content[at].Kind == yaml.ScalarNode:
		node.Content[at] = scalar(d.word())
	case size > 0 && node.Content[0].Kind == yaml.MappingNode:
		node.Content = slices.Insert(node.Content, at, d.element(3, node.Content[0].Content[0].Value == "name"))
	default:
		node.Content = slices.Insert(node.Content, at, scalar(d.word()))
	}
}

// isFree tells whether the map or list is one of those that dice made up.
func isFree(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
		return node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode
	}
	fixed := []string{"apiVersion", "metadata", "containers", "template", "spec"}
	named := node.Content[0].Value == "name" && len(node.Content) > 2 && node.Content[2].Value == "labels"
	return !named && !slices.Contains(fixed, node.Content[0].Value)
}

// objects are the objects of a random package.
type objects []*yaml.Node

func (d *dice) objects() objects {
	all := objects{}
	for i := range 1 + d.IntN(3) {
		all = append(all, d.object(i))
	}
	return all
}

// changed are the objects with changes by a side.
func (d *dice) changed(all objects, side string, removals bool) objects {
	d.side = side
	fresh := objects{}
	for _, object := range all {
		fresh = append(fresh, yaml.CopyYNode(object))
	}
	for range d.IntN(8) {
		d.change(fresh[d.IntN(len(fresh))], removals)
	}
	return fresh
}

// packaged writes the objects into one file, with a comment that keeps files from being the same.
func (o objects) packaged(t *testing.T, comment string) kpt.Package {
	t.Helper()
	text := strings.Builder{}
	for _, object := range o {
		written, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.WriteString("# " + comment + "\n")
		text.Write(written)
	}
	return kpt.Package{"a.yaml": {Mode: 0o644, Content: []byte(text.String())}}
}

// content is what the package says, without comments and the order of keys; with sorted the order of lists does not count either.
func content(t *testing.T, p kpt.Package, sorted bool) map[string]string {
	t.Helper()
	opened, err := kpt.OpenDocuments(p)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for i, item := range opened.Items {
		said[fmt.Sprint(item.ID(), i)] = canonical(item.Node.YNode(), sorted)
	}
	return said
}

func canonical(node *yaml.Node, sorted bool) string {
	parts := []string{}
	switch node.Kind {
	case yaml.AliasNode:
		return canonical(node.Alias, sorted)
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			parts = append(parts, canonical(node.Content[i], sorted)+": "+canonical(node.Content[i+1], sorted))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, child := range node.Content {
			parts = append(parts, canonical(child, sorted))
		}
		if sorted {
			slices.Sort(parts)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return node.ShortTag() + " " + fmt.Sprintf("%q", node.Value)
}

func merged(t *testing.T, base, theirs, local kpt.Package, policy merge.Policy) (kpt.Package, []merge.Conflict) {
	t.Helper()
	got, conflicts, err := merge.Merge(base, theirs, local, policy)
	if err != nil {
		t.Fatal(err)
	}
	again, conflictsAgain, err := merge.Merge(base, theirs, local, policy)
	if err != nil || !got.Equal(again) || !cmp.Equal(conflicts, conflictsAgain) {
		t.Fatalf("another result from the same input: %v", err)
	}
	return got, conflicts
}

// text is all that the package's one file says.
func text(p kpt.Package) string { return string(p["a.yaml"].Content) }

func TestWhatUpstreamLeavesAloneKeepsEveryByte(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		local := d.changed(base, "l", true).packaged(t, "mine")
		got, conflicts := merged(t, base.packaged(t, "c"), base.packaged(t, "c"), local, merge.Upstream)
		if !got.Equal(local) || len(conflicts) > 0 {
			t.Fatalf("seed %d: %v %s", seed, conflicts, cmp.Diff(text(local), text(got)))
		}
	}
}

func TestWhatPeopleLeaveAloneIsAsUpstreamHasIt(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		theirs := d.changed(base, "u", true)
		got, conflicts := merged(t, base.packaged(t, "c"), theirs.packaged(t, "c"), base.packaged(t, "mine"), merge.Local)
		if diff := cmp.Diff(content(t, theirs.packaged(t, ""), false), content(t, got, false)); diff != "" || len(conflicts) > 0 {
			t.Fatalf("seed %d: %v %s\n%s", seed, conflicts, diff, text(base.packaged(t, "c")))
		}
	}
}

func TestEqualChangesAreNoConflict(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		both := d.changed(base, "x", true)
		local := both.packaged(t, "mine")
		got, conflicts := merged(t, base.packaged(t, "c"), both.packaged(t, "c"), local, merge.Upstream)
		if !got.Equal(local) || len(conflicts) > 0 {
			t.Fatalf("seed %d: %v %s", seed, conflicts, cmp.Diff(text(local), text(got)))
		}
	}
}

// words are those that the sides make.
var words = regexp.MustCompile(`[ul][0-9]+w`)

// TestNothingIsLostSilently: every word that one side made is in the result or in a conflict that was told.
func TestNothingIsLostSilently(t *testing.T) {
	t.Parallel()
	for seed := range 2 * rounds() {
		d := newDice(seed)
		base := d.objects()
		theirs, local := d.changed(base, "u", seed%2 == 0).packaged(t, "c"), d.changed(base, "l", seed%2 == 0).packaged(t, "mine")
		for _, policy := range []merge.Policy{merge.Upstream, merge.Local} {
			got, conflicts := merged(t, base.packaged(t, "c"), theirs, local, policy)
			there := text(got) + told(conflicts)
			for _, made := range words.FindAllString(text(theirs)+text(local), -1) {
				if !strings.Contains(there, made) && !strings.Contains(there, "…") {
					t.Fatalf("seed %d, %s: %s is lost\n%s\nTHEIRS\n%s\nLOCAL\n%s\nGOT\n%s\n%s", seed, policy, made,
						text(base.packaged(t, "c")), text(theirs), text(local), text(got), told(conflicts))
				}
			}
		}
	}
}

// TestSidesCanBeSwapped: without a conflict it makes no difference who is upstream, but for the order of what both added.
func TestSidesCanBeSwapped(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		theirs, local := d.changed(base, "u", true).packaged(t, "c"), d.changed(base, "l", true).packaged(t, "mine")
		one, conflicts := merged(t, base.packaged(t, "c"), theirs, local, merge.Upstream)
		other, conflictsThere := merged(t, base.packaged(t, "c"), local, theirs, merge.Upstream)
		if len(conflicts) != len(conflictsThere) {
			t.Fatalf("seed %d: %s\nSWAPPED\n%s", seed, told(conflicts), told(conflictsThere))
		}
		if diff := cmp.Diff(content(t, one, true), content(t, other, true)); diff != "" && len(conflicts) == 0 {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// TestMergedOnceIsMerged: what has upstream's changes already does not get them again.
func TestMergedOnceIsMerged(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		theirs, local := d.changed(base, "u", true).packaged(t, "c"), d.changed(base, "l", true).packaged(t, "mine")
		once, conflicts := merged(t, base.packaged(t, "c"), theirs, local, merge.Upstream)
		if len(conflicts) > 0 {
			continue
		}
		twice, conflicts := merged(t, base.packaged(t, "c"), theirs, once, merge.Upstream)
		if diff := cmp.Diff(text(once), text(twice)); diff != "" || len(conflicts) > 0 {
			t.Fatalf("seed %d: %s %s\n%s\nTHEIRS\n%s\nLOCAL\n%s", seed, told(conflicts), diff, text(base.packaged(t, "c")), text(theirs), text(local))
		}
	}
}

// TestChangesOfDifferentFieldsDoNotMeet: each value is changed by one side at most, and the result has all changes.
func TestChangesOfDifferentFieldsDoNotMeet(t *testing.T) {
	t.Parallel()
	for seed := range rounds() {
		d := newDice(seed)
		base := d.objects()
		sides := [3]objects{}
		for i := range sides {
			sides[i] = d.changed(base, "", false)
			for j, object := range base {
				sides[i][j] = yaml.CopyYNode(object)
			}
		}
		for i := range base {
			d.side = "v"
			d.setValues(sides[0][i], sides[1][i], sides[2][i], true)
		}
		got, conflicts := merged(t, base.packaged(t, "c"), sides[0].packaged(t, "c"), sides[1].packaged(t, "mine"), merge.Upstream)
		if diff := cmp.Diff(content(t, sides[2].packaged(t, ""), false), content(t, got, false)); diff != "" || len(conflicts) > 0 {
			t.Fatalf("seed %d: %s %s\n%s", seed, told(conflicts), diff, text(base.packaged(t, "c")))
		}
	}
}

// setValues sets values of one of two sides, and all of them in the third.
func (d *dice) setValues(theirs, local, both *yaml.Node, top bool) {
	for i := range theirs.Content {
		if theirs.Kind == yaml.MappingNode && (i%2 == 0 || theirs.Content[i-1].Value == "name" || top && i < 4) {
			continue
		}
		if theirs.Content[i].Kind != yaml.ScalarNode {
			d.setValues(theirs.Content[i], local.Content[i], both.Content[i], false)
			continue
		}
		word := d.word()
		switch d.IntN(3) {
		case 0:
			theirs.Content[i].Value, both.Content[i].Value = word, word
		case 1:
			local.Content[i].Value, both.Content[i].Value = word, word
		}
	}
}
