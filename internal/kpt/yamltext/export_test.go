package yamltext

import (
	"hash/maphash"

	"go.yaml.in/yaml/v3"
)

// Spliced says whether Rewrite makes the smallest changes alone.
func Spliced(src []byte, want *yaml.Node) (bool, error) {
	document, err := parse(src)
	if err != nil {
		return false, err
	}
	g := grower{seed: maphash.MakeSeed()}
	wanted, err := g.grow(defined(want), 0)
	if err != nil {
		return false, err
	}
	r := rewriter{src: src, document: document, want: wanted}
	_, whole, err := r.rewrite(g)
	return whole == smallest, err
}
