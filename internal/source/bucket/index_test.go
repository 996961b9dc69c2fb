package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
)

// TestSmallIndexesDoNotPileUp: each artifact has one, most are soon of no use, and all are looked at whenever one is written.
func TestSmallIndexesDoNotPileUp(t *testing.T) {
	t.Parallel()
	p := parts{dir: t.TempDir(), max: 64 << 20, identity: "location"}
	for i := range 2 * maxIndexes {
		if err := os.WriteFile(filepath.Join(p.dir, fmt.Sprint(indexPrefix, i)), []byte("small"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := digest.FromString("last")
	p.Save(last, []byte("of the archive"))
	if found, err := os.ReadDir(p.dir); err != nil || len(found) != maxIndexes {
		t.Errorf("%d are left, %v", len(found), err)
	}
	if string(p.Load(last)) != "of the archive" {
		t.Error("the last one is not among them")
	}
}
