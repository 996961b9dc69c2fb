package yamltext_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// FuzzRewrite: what a document of any shape is rewritten to says what is wanted, and what does not change keeps every byte.
func FuzzRewrite(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add([]byte(text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		want := one(src)
		if want == nil {
			return
		}
		same, err := yamltext.Rewrite(src, one(src))
		if errors.Is(err, yamltext.ErrDeep) {
			return
		}
		if err != nil || !bytes.Equal(same, src) {
			t.Fatalf("%q became %q: %v", src, same, err)
		}
		m := newMutator(seed, 3)
		did := m.mutate(want)
		got, err := yamltext.Rewrite(src, want)
		if err != nil {
			t.Fatalf("%q: %s: %v", src, did, err)
		}
		document := one(got)
		if document == nil {
			t.Fatalf("%q: %s: became unreadable: %q", src, did, got)
		}
		if a, b := plain(want), plain(document); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q: %s (-want +got):\n%s\n%q", src, did, cmp.Diff(a, b), got)
		}
	})
}

// FuzzRewriteTo: any document can be rewritten to any other.
func FuzzRewriteTo(f *testing.F) {
	f.Add([]byte("a: 1 # one\nb: [x]\n"), []byte("b: {c: &d e}\na: |\n  text\n"))
	f.Add([]byte("- a\n- b: |+\n   x\n\n- c"), []byte("- b: >\n   y\n- ? [a]\n  : !t b\n- !!binary aGk=\n"))
	for _, text := range corpus(f) {
		f.Add([]byte("# head\na: b\n"), []byte(text))
		f.Add([]byte(text), []byte("metadata: {name: x}\n"))
	}
	f.Fuzz(func(t *testing.T, src, other []byte) {
		want := one(other)
		if one(src) == nil || want == nil {
			return
		}
		got, err := yamltext.Rewrite(src, want)
		if errors.Is(err, yamltext.ErrDeep) {
			return
		}
		if err != nil {
			t.Fatalf("%q to %q: %v", src, other, err)
		}
		document := one(got)
		if document == nil {
			t.Fatalf("%q to %q: became unreadable: %q", src, other, got)
		}
		if a, b := plain(want), plain(document); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q to %q (-want +got):\n%s\n%q", src, other, cmp.Diff(a, b), got)
		}
	})
}

// one is the document of a text that holds one.
func one(src []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	var node, more yaml.Node
	if err := decoder.Decode(&node); err != nil {
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil
	}
	return &node
}
