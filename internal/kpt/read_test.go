package kpt_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

func TestReadTakesTheFolderWithModesAndLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "repo/web/Kptfile", kptfile, 0o640)
	write(t, dir, "repo/web/sub/run.sh", "true", 0o700)
	write(t, dir, "repo/other/x", "x", 0o600)
	if err := os.Symlink("../nowhere", filepath.Join(dir, "repo/web/link")); err != nil {
		t.Fatal(err)
	}
	got, err := kpt.Read(os.DirFS(dir), "repo/web", kpt.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := kpt.Package{
		"Kptfile":    {Content: []byte(kptfile), Mode: 0o644},
		"sub/run.sh": {Content: []byte("true"), Mode: 0o755},
		"link":       {Content: []byte("../nowhere"), Mode: fs.ModeSymlink},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err = kpt.Read(os.DirFS(filepath.Join(dir, "repo/web")), ".", kpt.Limits{}); err != nil || !got.Equal(want) {
		t.Errorf("from the root: %v, %v", got, err)
	}
}

func write(t *testing.T, dir, name, content string, mode fs.FileMode) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// modest says of every file that it is small.
type modest struct{ fstest.MapFS }

type modestInfo struct{ fs.FileInfo }

func (modestInfo) Size() int64 { return 0 }

type modestEntry struct{ fs.DirEntry }

func (e modestEntry) Info() (fs.FileInfo, error) {
	info, err := e.DirEntry.Info()
	return modestInfo{info}, err
}

func (m modest) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := m.MapFS.ReadDir(name)
	for i, entry := range entries {
		entries[i] = modestEntry{entry}
	}
	return entries, err
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"p/a": {Data: []byte("12345")}, "p/b": {Data: []byte("123")}, "p/c/d": {Data: []byte("1")}}
	cases := map[string]struct {
		reason string
		limits kpt.Limits
		want   string
	}{
		"within": {"What is at the limits is read.", kpt.Limits{Bytes: 9, Files: 3, FileBytes: 5}, ""},
		"bytes":  {"All contents count.", kpt.Limits{Bytes: 8}, "the package is too large: it has more than 8 bytes"},
		"file":   {"A single content counts.", kpt.Limits{FileBytes: 4}, `the package is too large: "p/a" has more than 4 bytes`},
		"files":  {"The number counts.", kpt.Limits{Files: 2}, "the package is too large: it has more than 2 files"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fsys := range []fs.FS{files, modest{files}} {
				got, err := kpt.Read(fsys, "p", tc.limits)
				switch {
				case tc.want == "" && (err != nil || len(got) != 3):
					t.Errorf("%s: got %v, %v", tc.reason, got, err)
				case tc.want != "" && (!errors.Is(err, kpt.ErrTooLarge) || err.Error() != tc.want):
					t.Errorf("%s: got %v", tc.reason, err)
				}
			}
		})
	}
}

func TestReadRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"p/module": {Mode: fs.ModeDir}, "p/a": {}, "q/device": {Mode: fs.ModeDevice}}
	if _, err := kpt.Read(files, "p", kpt.Limits{}); !errors.Is(err, kpt.ErrSubmodule) {
		t.Errorf("submodule: %v", err)
	}
	if _, err := kpt.Read(files, "nowhere", kpt.Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := kpt.Read(files, "q", kpt.Limits{}); err == nil {
		t.Error("a device was read")
	}
}
