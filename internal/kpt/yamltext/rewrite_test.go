package yamltext_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

func corpus(tb testing.TB) map[string]string {
	tb.Helper()
	files, err := filepath.Glob("testdata/corpus/*")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no corpus: %v", err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

func read(tb testing.TB, text string) *yaml.Node {
	tb.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		tb.Fatalf("%v in:\n%s", err, text)
	}
	return &node
}

func TestRewriteOfTheSameIsTheSame(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		got, err := yamltext.Rewrite([]byte(text), read(t, text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRewriteSaysWhatIsWanted changes documents at random.
func TestRewriteSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			large := 0
			for seed := range uint64(150) {
				want := read(t, text)
				m := newMutator(seed, 1)
				var did []string
				for range 1 + m.IntN(4) {
					did = append(did, m.mutate(want))
				}
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatalf("seed %d: %v: %v", seed, did, err)
				}
				spliced, err := yamltext.Spliced([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				if !spliced {
					large++
				}
				if a, b := plain(want), plain(read(t, string(got))); !reflect.DeepEqual(a, b) {
					diff := cmp.Diff(a, b)
					t.Fatalf("seed %d: %v (-want +got):\n%s\n%s", seed, did, diff, got)
				}
			}
			// Comments cannot stay in a flow collection of several lines; else what is larger than need be is rare.
			if large > 3 && !strings.Contains(text, "{\n") {
				t.Errorf("%d times more than the smallest changes were made", large)
			}
		})
	}
}

// mutator changes documents.
type mutator struct{ *rand.Rand }

func newMutator(seed, stream uint64) mutator { return mutator{rand.New(rand.NewPCG(seed, stream))} }

// mutate makes one change somewhere in the tree and says what it did.
func (m mutator) mutate(document *yaml.Node) string {
	var nodes []*yaml.Node
	var collect func(*yaml.Node)
	collect = func(node *yaml.Node) {
		nodes = append(nodes, node)
		for i, child := range node.Content {
			if node.Kind != yaml.MappingNode || i%2 == 1 {
				collect(child)
			}
		}
	}
	collect(document.Content[0])
	node := nodes[m.IntN(len(nodes))]
	if node.Anchor != "" {
		return "nothing"
	}
	switch node.Kind {
	case yaml.MappingNode:
		return m.mapping(node)
	case yaml.SequenceNode:
		return m.sequence(node)
	default:
		return m.scalar(node)
	}
}

func (m mutator) scalar(node *yaml.Node) string {
	old := node.Value
	if m.IntN(3) == 0 {
		*node = *m.fresh(2)
		return fmt.Sprintf("replaced %q", old)
	}
	node.Kind, node.Alias, node.Tag, node.Value = yaml.ScalarNode, nil, "!!str", m.text()
	if m.IntN(3) == 0 {
		node.Style = 0
	}
	return fmt.Sprintf("set %q to %q", old, node.Value)
}

func hasAnchor(node *yaml.Node) bool {
	return node.Anchor != "" || slices.ContainsFunc(node.Content, hasAnchor)
}

func (m mutator) mapping(node *yaml.Node) string {
	count := len(node.Content) / 2
	switch choice := m.IntN(5); {
	case choice == 0 && count > 0:
		at := m.IntN(count)
		if hasAnchor(node.Content[2*at]) || hasAnchor(node.Content[2*at+1]) {
			return "nothing"
		}
		key := node.Content[2*at].Value
		node.Content = append(append([]*yaml.Node{}, node.Content[:2*at]...), node.Content[2*at+2:]...)
		return "deleted " + key
	case choice == 1 && count > 1:
		a, b := m.IntN(count), m.IntN(count)
		if hasAnchor(node) {
			return "nothing"
		}
		for k := range 2 {
			node.Content[2*a+k], node.Content[2*b+k] = node.Content[2*b+k], node.Content[2*a+k]
		}
		return fmt.Sprintf("swapped %q and %q", node.Content[2*a].Value, node.Content[2*b].Value)
	default:
		at := m.IntN(count + 1)
		if m.IntN(2) == 0 {
			at = count
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprintf("new%d", m.IntN(1000))}
		if m.IntN(4) == 0 {
			key.Value = m.text()
		}
		var content []*yaml.Node
		content = append(content, node.Content[:2*at]...)
		content = append(content, key, m.fresh(3))
		node.Content = append(content, node.Content[2*at:]...)
		return fmt.Sprintf("added %q at %d", key.Value, at)
	}
}

func (m mutator) sequence(node *yaml.Node) string {
	count := len(node.Content)
	switch choice := m.IntN(5); {
	case choice == 0 && count > 0:
		at := m.IntN(count)
		if hasAnchor(node.Content[at]) {
			return "nothing"
		}
		node.Content = append(append([]*yaml.Node{}, node.Content[:at]...), node.Content[at+1:]...)
		return fmt.Sprintf("deleted %d", at)
	case choice == 1 && count > 1:
		a, b := m.IntN(count), m.IntN(count)
		if hasAnchor(node) {
			return "nothing"
		}
		node.Content[a], node.Content[b] = node.Content[b], node.Content[a]
		return fmt.Sprintf("swapped %d and %d", a, b)
	default:
		at := m.IntN(count + 1)
		var content []*yaml.Node
		content = append(content, node.Content[:at]...)
		content = append(content, m.fresh(3))
		node.Content = append(content, node.Content[at:]...)
		return fmt.Sprintf("inserted at %d", at)
	}
}

// fresh is a new node, with children down to a depth.
func (m mutator) fresh(depth int) *yaml.Node {
	node := &yaml.Node{}
	switch choice := m.IntN(7); {
	case choice == 0 && depth > 0:
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
		for i := range m.IntN(4) {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprintf("k%d", i)}
			node.Content = append(node.Content, key, m.fresh(depth-1))
		}
	case choice == 1 && depth > 0:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		for range m.IntN(4) {
			node.Content = append(node.Content, m.fresh(depth-1))
		}
	case choice == 2:
		node.Kind, node.Tag, node.Value = yaml.ScalarNode, "!!int", "42"
	case choice == 3:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: []string{"", "~", "null"}[m.IntN(3)]}
	default:
		node.Kind, node.Tag, node.Value = yaml.ScalarNode, "!!str", m.text()
		node.Style = []yaml.Style{0, 0, 0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}[m.IntN(7)]
	}
	if node.Kind != yaml.ScalarNode && m.IntN(5) == 0 {
		node.Style = yaml.FlowStyle
	}
	if m.IntN(6) == 0 {
		node.HeadComment = "# head\n# of two lines"
	}
	if m.IntN(6) == 0 {
		node.LineComment = "# line"
	}
	if m.IntN(8) == 0 {
		node.FootComment = "# foot"
	}
	return node
}

// text is a string that is hard to write.
func (m mutator) text() string {
	hard := []string{
		"", " ", "a", "true", "yes", "on", "N", "null", "~", "012", "0x1f", "1e3", "1_000", "12:30", "1.5", ".5", "2024-01-01", "=", "<<",
		"- a", "-", "-a", "? b", ": c", ":d", "a: b", "a :b", "a:", "a #b", "a#b", "#a", "&a", "*a", "!a", "!!str", "|", ">", "'", "\"", "it's",
		"%a", "@a", "`a", "[a", "a]", "{a", "a}", "a, b", ",", "---", "--- a", "...", "a\nb", "a\nb\n", "\na", "\n", "\n\n", "a\n\n", " a\nb",
		"a\n b\n", "\ta", "a\t", "a\n\tb\n", "a\n\n\nb", "# a\nb\n", "a \nb ", "  \na", "a\n  \n", "ä", "🌍", "\u00a0", "\ufeff", "\u2028a",
		"a\rb", "a\r\nb", "\x00", "\x1b[1m", "a\u0085b", strings.Repeat("long ", 60), strings.Repeat("x", 2000), "---\na: b\n...\n",
	}
	text := hard[m.IntN(len(hard))]
	if m.IntN(4) == 0 {
		text += hard[m.IntN(len(hard))]
	}
	return text
}

// TestRewriteOfRandomDocuments changes documents that the encoder wrote.
func TestRewriteOfRandomDocuments(t *testing.T) {
	t.Parallel()
	large, count := 0, 0
	for seed := range uint64(150) {
		m := newMutator(seed, 4)
		var text strings.Builder
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2 + m.IntN(3))
		if m.IntN(2) == 0 {
			encoder.CompactSeqIndent()
		}
		tree := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for i := range 1 + m.IntN(6) {
			tree.Content = append(tree.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprintf("k%d", i)}, m.fresh(4))
		}
		if err := encoder.Encode(tree); err != nil {
			t.Fatal(err)
		}
		src := []byte(text.String())
		want := one(src)
		if want == nil {
			// The encoder does not always write what the parser reads.
			continue
		}
		same, err := yamltext.Rewrite(src, one(src))
		if err != nil || !bytes.Equal(same, src) {
			t.Fatalf("seed %d: %q became %q: %v", seed, src, same, err)
		}
		var did []string
		for range 1 + m.IntN(5) {
			did = append(did, m.mutate(want))
		}
		got, err := yamltext.Rewrite(src, want)
		if err != nil {
			t.Fatalf("seed %d: %v: %v\n%s", seed, did, err, src)
		}
		if a, b := plain(want), plain(read(t, string(got))); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %v (-want +got):\n%s\n%s", seed, did, cmp.Diff(a, b), got)
		}
		spliced, err := yamltext.Spliced(src, want)
		if err != nil {
			t.Fatal(err)
		}
		count++
		if !spliced {
			large++
			t.Logf("seed %d: %v\n%s", seed, did, src)
		}
	}
	if large > count/100 {
		t.Errorf("in %d of %d documents more than the smallest changes were made", large, count)
	}
}
