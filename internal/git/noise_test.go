package git_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// noise is n bytes that do not compress, always the same.
func noise(n int) string {
	generator := rand.NewChaCha8([32]byte{'s', 'l', 'u', 'i', 'c', 'e'})
	content := make([]byte, n)
	_, _ = generator.Read(content) // It never fails.
	return string(content)
}

// packName is the index of the repository's only pack.
func packName(t *testing.T, repository *upstream.Edited) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(repository.Dir(), "objects", "pack"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".idx") {
			return entry.Name()
		}
	}
	t.Fatal("no pack")
	return ""
}
