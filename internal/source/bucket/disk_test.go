package bucket_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/bucket"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
)

// TestAFolderThatCannotBeWrittenIsToldOnce: its path says nothing to tenants, and names of temporary files are others each time,
// which would be news.
func TestAFolderThatCannotBeWrittenIsToldOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, bucketsource.Options{Cache: bucket.NewCache(filepath.Join(file, "cache"), 1<<20)})
	r.fake.Put(map[string]string{"a": "1"})
	_, first := r.try()
	_, second := r.try()
	if first == nil || second == nil || first.Error() != second.Error() || strings.Contains(first.Error(), file) {
		t.Errorf("first %v, then %v", first, second)
	}
}
