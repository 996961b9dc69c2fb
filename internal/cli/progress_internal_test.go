package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProgress: a change is told once; a terminal has one line for all of them, which is gone before the answer comes.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		progress progress
		want     string
	}{
		"File":     {progress{}, "Module a/b  Waiting: x\\n\nModule a/b  Failed\n"},
		"Terminal": {progress{terminal: true}, "\r\x1b[KModule a/b  Waiting: x\\n\r\x1b[KModule a/b  Failed\r\x1b[K"},
		"Quiet":    {progress{quiet: true, terminal: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told bytes.Buffer
			tc.progress.to = &told
			module, _ := kindOf("module")
			all := []*target{newTarget(module, "a", "b"), newTarget(module, "a", "done")}
			all[1].verdict, all[1].at = yes, "Ready"
			a := &awaited{progress: tc.progress}
			for _, at := range []string{"", "Waiting: x\n", "Waiting: x\n", "Failed"} {
				all[0].at = at
				a.remind(all)
			}
			a.progress.clear()
			if diff := cmp.Diff(tc.want, told.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestProgressKnowsATerminal: a file is none.
func TestProgressKnowsATerminal(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/dev/ptmx": true, filepath.Join(t.TempDir(), "file"): false} {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if got := newProgress(file, false).terminal; got != want {
			t.Errorf("%s: %t", path, got)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}
