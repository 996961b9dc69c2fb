package function

import (
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	yaml2 "sigs.k8s.io/yaml"
)

// FuzzText holds that what is written as a string is read as one by Kubernetes, too.
func FuzzText(f *testing.F) {
	for _, value := range []string{
		"", "yes", "No", "on", "OFF", "true", "null", "~", "1", "0x1", "010", "1_000", "1:30", "1e3", ".inf", "2001-01-01", "=",
		"<<", "y", "N", "web", "a: b", "# c", "- d", "two\nlines", "'", "\"", "&a", "*a", "!b", "NaN", "nULL", "0o7", "True ",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, r := range value {
			if r < ' ' && r != '\n' || r > '~' {
				return // What does not print is the encoder's business.
			}
		}
		written, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{newText("key"), newText(value)}})
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]any{}
		if err := yaml2.Unmarshal(written, &read); err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		if read["key"] != value {
			t.Errorf("%q is written as %q and read as %v", value, written, read["key"])
		}
	})
}
