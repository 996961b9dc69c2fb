package yamltext_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// BenchmarkRewrite changes one value of a document of one megabyte.
func BenchmarkRewrite(b *testing.B) {
	part, err := os.ReadFile("testdata/corpus/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("items:\n")
	for text.Len() < 1<<20 {
		sign := "- "
		for line := range strings.Lines(string(part)) {
			text.WriteString(sign + line)
			sign = "  "
		}
	}
	src := []byte(strings.ReplaceAll(text.String(), "- # Copyright", "-\n  # Copyright"))
	var same, changed, shorter yaml.Node
	for _, node := range []*yaml.Node{&same, &changed, &shorter} {
		if err := yaml.Unmarshal(src, node); err != nil {
			b.Fatal(err)
		}
	}
	items := changed.Content[0].Content[1]
	items.Content[len(items.Content)/2].Content[1].Value = "apps/v2"
	items = shorter.Content[0].Content[1]
	items.Content = append(items.Content[:5:5], items.Content[6:]...)
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			var node yaml.Node
			if err := yaml.Unmarshal(src, &node); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, want := range map[string]*yaml.Node{"same": &same, "changed": &changed, "shorter": &shorter} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := yamltext.Rewrite(src, want); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
