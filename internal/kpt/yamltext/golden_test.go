package yamltext_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

var update = flag.Bool("update", false, "write the golden files anew")

const divider = "=====\n"

// TestRewriteGolden reads files of three parts: a text, what it shall say, and the text that does.
func TestRewriteGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(text), divider)
			got, err := yamltext.Rewrite([]byte(parts[0]), read(t, parts[1]))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				text := strings.Join([]string{parts[0], parts[1], string(got)}, divider)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(parts[2], string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
