package function

import (
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// FuzzValues holds that no text has more values than it is said to have.
func FuzzValues(f *testing.F) {
	for _, text := range []string{
		"", "a", "a: b\n", "- - - a", "[[[]]]", "[,,]", "{a,b,c}", "? ? a", "a: &x [*x]", "{a: {b: {c}}}", "- a:\n  - b\n", "? a\n: b",
		"[a: b, c: d]", "\"a\":\n  - 'b'\n", "{\"a\":1,\"b\":2}", "[\"a\":1]", "-\n-\n-", "&a : b", "!t ? x", "{:}", "[?]", "{? }", "- ? -",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := yaml.Node{}
		if yaml.Unmarshal([]byte(text), &read) != nil {
			return
		}
		var count func(n *yaml.Node) int64
		count = func(n *yaml.Node) int64 {
			total := int64(1)
			for _, below := range n.Content {
				total += count(below)
			}
			return total
		}
		// The document itself is no value.
		if got, most := count(&read)-1, values([]byte(text)); got > most {
			t.Errorf("%q has %d values, and is said to have %d at most", text, got, most)
		}
	})
}
