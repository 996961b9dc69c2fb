package yamltext_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	kubernetes "sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// TestStringsStayStringsForOldReaders asks the reader that Kubernetes has, which is one of YAML 1.1.
func TestStringsStayStringsForOldReaders(t *testing.T) {
	t.Parallel()
	texts := []string{
		"true", "True", "TRUE", "yes", "Yes", "no", "NO", "on", "off", "y", "n", "Y", "N", "null", "~", "Null", "", "012", "0o17", "0x1F", "0b11",
		"1", "-1", "+1", "1_000", "1__0", "_1", "12:30", "12:30:45", "190:20:30.15", "1.5", ".5", "5.", "1e3", "1E+3", "1e-3", "e5", "1.2.3", ".inf",
		"-.Inf", ".NaN", "2024-01-01", "2024-1-1", "2024-01-01T00:00:00Z", "2024-01-01 00:00:00", "=", "<<", "0", "00", "0.0", "-", "+", ".", "--",
		"0x", "0b", "0b2", "1,000", "v1", "1Gi", "100m", "1e", "1e3x", "١", "1.", "-0", "+.5", "-.5e10", "0777", "089", "infinity", "NaN", "inf",
	}
	for _, src := range []string{"a: x\n", "a: 'x'\n", "a: \"x\"\n", "a: |-\n  x\n", "a: >-\n  x\n", "a: 1\n", "a: true\n", "a:\n", "a: {b: c}\n", "b: c\n", "{a: x}\n"} {
		for _, text := range texts {
			for name, style := range map[string]yaml.Style{"plain": 0, "single": yaml.SingleQuotedStyle, "literal": yaml.LiteralStyle} {
				want := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
					{Kind: yaml.ScalarNode, Value: "a"},
					{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style},
				}}
				got, err := yamltext.Rewrite([]byte(src), want)
				if err != nil {
					t.Fatalf("%q in %q: %v", text, src, err)
				}
				var read map[string]any
				if err := kubernetes.Unmarshal(got, &read); err != nil {
					t.Fatalf("%q: %v", got, err)
				}
				if diff := cmp.Diff(map[string]any{"a": text}, read); diff != "" {
					t.Errorf("%q as %s in %q became %q (-want +got):\n%s", text, name, src, got, diff)
				}
			}
		}
	}
}

// TestOldReadersReadTheSameElsewhere: what is not changed says the same to a reader of YAML 1.1 as before.
func TestOldReadersReadTheSameElsewhere(t *testing.T) {
	t.Parallel()
	src := "a: yes\nb: [on, 'off', 0o7]\nc:\n  d: 012\n  e: \"yes\"\n  f: 1:30\nlist:\n- y\n- {n: no}\n"
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		want := read(t, src)
		root := want.Content[0]
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: mutator{r}.text()}
		// The new value is the first, so that all others have to keep theirs.
		place := []*yaml.Node{root, root.Content[5]}[r.IntN(2)]
		place.Content = append(place.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "new"}, node)
		list := root.Content[7]
		list.Content[0], list.Content[1] = list.Content[1], list.Content[0]
		got, err := yamltext.Rewrite([]byte(src), want)
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]any
		if err := kubernetes.Unmarshal([]byte(src), &before); err != nil {
			t.Fatal(err)
		}
		if err := kubernetes.Unmarshal(got, &after); err != nil {
			t.Fatalf("%v:\n%s", err, got)
		}
		elements, _ := before["list"].([]any)
		before["list"] = []any{elements[1], elements[0]}
		if place == root {
			before["new"] = node.Value
		} else if below, ok := before["c"].(map[string]any); ok {
			below["new"] = node.Value
		}
		wanted, _ := json.Marshal(before) //nolint:errchkjson // Maps of strings.
		found, _ := json.Marshal(after)   //nolint:errchkjson // Maps of strings.
		if diff := cmp.Diff(string(wanted), string(found)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s\n%s", seed, diff, got)
		}
	}
}
