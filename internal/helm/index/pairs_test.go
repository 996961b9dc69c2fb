package index_test

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzConvertFrom: what was there before has no influence on what an index is converted to.
func FuzzConvertFrom(f *testing.F) {
	files, err := filepath.Glob("testdata/documents/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text, text)
		}
	}
	f.Fuzz(func(t *testing.T, before, text []byte) {
		if len(text) > 1<<13 || len(before) > 1<<13 {
			t.Skip()
		}
		if previous, err := convert(t, before, nil); err == nil {
			check(t, text, previous)
		}
	})
}
