package index_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/helm/index"
)

// blocks are the versions of a document in Helm's style, whose dashes stand two spaces in.
func blocks(tb testing.TB, name string) [][]byte {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	var all [][]byte
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("  - ")):
			all = append(all, bytes.Clone(line))
		case len(all) > 0 && bytes.HasPrefix(line, []byte("    ")) || len(all) > 0 && len(line) == 1:
			all[len(all)-1] = append(all[len(all)-1], line...)
		}
	}
	return all
}

// TestHelmsStyleIsReadQuickly: what Helm writes never needs the library.
func TestHelmsStyleIsReadQuickly(t *testing.T) {
	t.Parallel()
	all := blocks(t, "testdata/documents/helm.yaml")
	if len(all) != 4 {
		t.Fatalf("want 4 blocks, got %d", len(all))
	}
	for _, block := range all {
		if _, err := index.ReadBlock(block, 2); err != nil {
			t.Errorf("%v:\n%s", err, block)
		}
	}
}

// FuzzBlock: what the quick reader reads, the library reads as well, and as the same.
func FuzzBlock(f *testing.F) {
	for _, name := range []string{"testdata/documents/helm.yaml", "testdata/documents/drops.yaml", "testdata/documents/folded.yaml", "testdata/documents/bombs.yaml"} {
		for _, block := range blocks(f, name) {
			f.Add(block)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := index.ReadBlock(text, 2)
		if errors.Is(err, index.ErrUnusual) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var want []*index.Version
		if err := yaml.UnmarshalStrict(text, &want); err != nil || len(want) != 1 || want[0] == nil {
			t.Fatalf("the library reads %d versions: %v\n%s", len(want), err, text)
		}
		if diff := cmp.Diff(*want[0], *got, sameWhenEmpty()...); diff != "" {
			t.Fatalf("-library +ours:\n%s", diff)
		}
	})
}

// sameWhenEmpty takes no list for an empty one, where JSON shows neither.
func sameWhenEmpty() []cmp.Option {
	return []cmp.Option{cmpopts.EquateEmpty()}
}
