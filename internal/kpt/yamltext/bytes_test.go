package yamltext_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// TestOneValueChangesOneLine: with the value on one line, all other lines keep every byte.
func TestOneValueChangesOneLine(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := len(scalars(read(t, text)))
			lines := slices.Collect(strings.Lines(text))
			for i := range count {
				want := read(t, text)
				node := scalars(want)[i]
				line := node.Line
				if !strings.Contains(lines[line-1], node.Value) || node.Value == "" {
					// The value is on more than one line, or on none.
					continue
				}
				node.Value, node.Tag = "changed", "!!str"
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				changed := slices.Collect(strings.Lines(string(got)))
				if len(changed) != len(lines) {
					t.Fatalf("%d lines became %d:\n%s", len(lines), len(changed), got)
				}
				for k := range lines {
					if same := lines[k] == changed[k]; same == (k+1 == line) {
						t.Errorf("value of line %d: line %d was %q and is %q", line, k+1, lines[k], changed[k])
					}
				}
			}
		})
	}
}

// scalars lists the values that are scalars, in the order of the text.
func scalars(node *yaml.Node) []*yaml.Node {
	var found []*yaml.Node
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.MappingNode && i%2 == 0 || child.Anchor != "" || child.Style&yaml.TaggedStyle != 0:
		case child.Kind == yaml.ScalarNode:
			found = append(found, child)
		default:
			found = append(found, scalars(child)...)
		}
	}
	return found
}

// TestDeletingAddsNothing: what is left of a text after an entry has gone are lines that it had, in their order.
func TestDeletingAddsNothing(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range deletable(read(t, text)) {
				want := read(t, text)
				deletable(want)[i]()
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				rest := text
				for line := range strings.Lines(string(got)) {
					// An entry may move up behind a dash.
					core := strings.TrimLeft(line, "\ufeff -:")
					_, after, ok := strings.Cut(rest, core)
					if !ok {
						t.Fatalf("deletion %d: line %q is new in\n%s", i, line, got)
					}
					rest = after
				}
			}
		})
	}
}

// deletable lists what deletes an entry of a block collection that has others.
func deletable(node *yaml.Node) []func() {
	var found []func()
	size := 1
	if node.Kind == yaml.MappingNode {
		size = 2
	}
	for i, child := range node.Content {
		if len(node.Content) > size && i%size == 0 && node.Style&yaml.FlowStyle == 0 && !hasAnchor(node) {
			found = append(found, func() { node.Content = slices.Delete(slices.Clone(node.Content), i, i+size) })
		}
		found = append(found, deletable(child)...)
	}
	return found
}

func TestWantIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		for seed := range uint64(20) {
			want, twin := read(t, text), read(t, text)
			for _, node := range []*yaml.Node{want, twin} {
				newMutator(seed, 6).mutate(node)
			}
			src := []byte(text)
			if _, err := yamltext.Rewrite(src, want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(want, twin) {
				t.Errorf("%s: seed %d: want is another", name, seed)
			}
			if string(src) != text {
				t.Errorf("%s: seed %d: the text is another", name, seed)
			}
		}
	}
}

func TestRewriteOfNothing(t *testing.T) {
	t.Parallel()
	want := read(t, "a: b # c\nlist:\n- d\n")
	for src, text := range map[string]string{
		"":              "a: b # c\nlist:\n- d\n",
		"# alone":       "# alone\na: b # c\nlist:\n- d\n",
		"---\n":         "---\na: b # c\nlist:\n- d\n",
		"---":           "---\na: b # c\nlist:\n- d",
		"---\n\n...\n":  "---\n\na: b # c\nlist:\n- d\n...\n",
		"--- ~ # gone ": "--- # gone \na: b # c\nlist:\n- d",
		"--- text\n":    "---\na: b # c\nlist:\n- d\n",
		"--- # on\nx\n": "--- # on\na: b # c\nlist:\n- d\n",
	} {
		got, err := yamltext.Rewrite([]byte(src), want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", src, diff)
		}
	}
	for _, src := range []string{"", "# alone\n", "---\n"} {
		for _, nothing := range []*yaml.Node{nil, {}, {Kind: yaml.DocumentNode}, {Kind: yaml.ScalarNode, Tag: "!!null"}} {
			got, err := yamltext.Rewrite([]byte(src), nothing)
			if err != nil || string(got) != src {
				t.Errorf("%q became %q: %v", src, got, err)
			}
		}
	}
}

func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	scalar := func(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }
	loop := &yaml.Node{Kind: yaml.SequenceNode}
	loop.Content = []*yaml.Node{loop}
	for name, tc := range map[string]struct {
		reason string
		src    string
		node   *yaml.Node
		want   error
	}{
		"ManyDocuments": {reason: "which of them is meant cannot be told", src: "a: 1\n---\nb: 2\n", node: scalar("x"), want: yamltext.ErrManyDocuments},
		"OddMapping":    {reason: "a key needs a value", node: &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("a")}}, want: yamltext.ErrMalformed},
		"NotUTF8":       {reason: "YAML is Unicode", node: scalar("\xff"), want: yamltext.ErrMalformed},
		"UnknownKind":   {reason: "no such node is known", node: &yaml.Node{Kind: 77}, want: yamltext.ErrMalformed},
		"NamelessAlias": {reason: "an alias stands for something", node: &yaml.Node{Kind: yaml.AliasNode}, want: yamltext.ErrMalformed},
		"Loop":          {reason: "a tree ends", node: loop, want: yamltext.ErrDeep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := yamltext.Rewrite([]byte(tc.src), tc.node); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := yamltext.Rewrite([]byte("a: [\n"), scalar("x")); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("an unreadable text: %v", err)
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	src := "a: &x\n  k: 1 # one\nb: *x\nc: [*x, &y z, *y]\n"
	for name, tc := range map[string]struct {
		reason string
		change func(root *yaml.Node)
		want   string
	}{
		"AnchoredChanges": {
			reason: "what is changed below an anchor is changed in place",
			change: func(root *yaml.Node) { root.Content[1].Content[1].Value = "2" },
			want:   "a: &x\n  k: 2 # one\nb: *x\nc: [*x, &y z, *y]\n",
		},
		"AnchoredGoes": {
			reason: "the first alias becomes what the anchor stood for",
			change: func(root *yaml.Node) { root.Content = root.Content[2:] },
			want:   "b: &x\n  k: 1 # one\nc: [*x, &y z, *y]\n",
		},
		"AnchoredIsMadeAnew": {
			reason: "a new node has no anchor, and aliases stand for the old one",
			change: func(root *yaml.Node) { root.Content[1] = &yaml.Node{Kind: yaml.ScalarNode, Value: "new"} },
			want:   "a: new\nb: &x\n  k: 1 # one\nc: [*x, &y z, *y]\n",
		},
		"AnchorIsForgotten": {
			reason: "a node that others stand for keeps its anchor",
			change: func(root *yaml.Node) { root.Content[1].Anchor = "" },
			want:   src,
		},
		"AnchoredMovesBelow": {
			reason: "an alias before its anchor becomes the anchor",
			change: func(root *yaml.Node) {
				root.Content = slices.Concat(root.Content[2:4], root.Content[:2], root.Content[4:])
			},
			want: "b: &x\n  k: 1 # one\na: &x\n  k: 1 # one\nc: [*x, &y z, *y]\n",
		},
		"AliasBecomesValue": {
			reason: "an alias may be replaced like any value",
			change: func(root *yaml.Node) { root.Content[3] = &yaml.Node{Kind: yaml.ScalarNode, Value: "v"} },
			want:   "a: &x\n  k: 1 # one\nb: v\nc: [*x, &y z, *y]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := read(t, src)
			tc.change(want.Content[0])
			got, err := yamltext.Rewrite([]byte(src), want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnchangedTextIsTheSameMemory: callers can tell cheaply that nothing has been changed.
func TestUnchangedTextIsTheSameMemory(t *testing.T) {
	t.Parallel()
	src := []byte("a: 1\n")
	got, err := yamltext.Rewrite(src, read(t, string(src)))
	if err != nil || &got[0] != &src[0] || !bytes.Equal(got, src) {
		t.Errorf("%q: %v", got, err)
	}
}
