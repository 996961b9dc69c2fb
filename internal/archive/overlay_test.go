package archive_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/tree"
)

func base() fstest.MapFS {
	return fstest.MapFS{
		"README.md":  {Data: []byte("base")},
		"apps/a":     {Data: []byte("base")},
		"apps/in/b":  {Data: []byte("base")},
		"nothing":    {Mode: fs.ModeDir | 0o755},
		"link":       {Data: []byte("apps"), Mode: fs.ModeSymlink},
		"apps2/file": {Data: []byte("base")},
	}
}

func included() fstest.MapFS {
	return fstest.MapFS{
		"top":          {Data: []byte("included")},
		"run.sh":       {Data: []byte("included"), Mode: 0o755},
		"deep/er/file": {Data: []byte("included")},
		"out":          {Data: []byte("/etc"), Mode: fs.ModeSymlink},
	}
}

// planted is a tree with the entries of another file system.
func planted(tb testing.TB, files fs.FS) *tree.Tree {
	tb.Helper()
	nodes := map[string]*tree.Node{}
	check(tb, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		check(tb, err)
		nodes[name] = &tree.Node{Name: entry.Name(), Mode: info.Mode(), Size: info.Size(), Source: content{files, name}}
		if above := nodes[path.Dir(name)]; name != "." {
			above.Children = append(above.Children, nodes[name])
		}
		return nil
	}))
	return &tree.Tree{Root: nodes["."]}
}

// content is that of a file.
type content struct {
	files fs.FS
	name  string
}

func (c content) Open(*tree.Node) (io.ReadCloser, error) { return c.files.Open(c.name) }

func TestOverlay(t *testing.T) {
	t.Parallel()
	untouched := []string{"README.md", "apps/a", "apps/in/b", "apps2/file"}
	cases := map[string]struct {
		reason string
		mounts []archive.Mount
		want   []string // files from the mounted tree, beside those of base
		err    error
	}{
		"All": {
			reason: "No From means all of the tree.",
			mounts: []archive.Mount{{To: "new"}},
			want:   []string{"new/top", "new/run.sh", "new/deep/er/file"},
		},
		"Folder": {
			reason: "Folders above are made up, and existing ones are added to.",
			mounts: []archive.Mount{{From: "deep", To: "apps/in/x/y"}},
			want:   []string{"apps/in/x/y/er/file"},
		},
		"File": {
			reason: "A single file may go by another name.",
			mounts: []archive.Mount{{From: "run.sh", To: "x/go"}},
			want:   []string{"x/go"},
		},
		"FileOverFile": {
			reason: "A file gives way to a file, as in a rename.",
			mounts: []archive.Mount{{From: "top", To: "apps/a"}},
			want:   []string{"apps/a"},
		},
		"Confined": {
			reason: "What leads upwards ends at the root, on both sides.",
			mounts: []archive.Mount{{From: "../../deep/../deep", To: "/../../x/../y/"}},
			want:   []string{"y/er/file"},
		},
		"Order": {
			reason: "A later mount may go inside an earlier one.",
			mounts: []archive.Mount{{To: "one"}, {From: "deep/er", To: "one/deep/two"}, {From: "top", To: "one/top"}},
			want:   []string{"one/top", "one/run.sh", "one/deep/er/file", "one/deep/two/file"},
		},
		"Beside": {
			reason: "Two mounts may share a made up folder.",
			mounts: []archive.Mount{{From: "deep", To: "m/b"}, {From: "deep", To: "m/a"}},
			want:   []string{"m/a/er/file", "m/b/er/file"},
		},
		"Root":        {"The root exists.", []archive.Mount{{To: "."}}, nil, archive.ErrMount},
		"NoPlace":     {"No To is the root.", []archive.Mount{{}}, nil, archive.ErrMount},
		"Taken":       {"The folder exists.", []archive.Mount{{To: "apps"}}, nil, archive.ErrMount},
		"TakenEmpty":  {"A folder exists also when empty.", []archive.Mount{{To: "nothing"}}, nil, archive.ErrMount},
		"TakenByFile": {"No folder replaces a file.", []archive.Mount{{To: "README.md"}}, nil, archive.ErrMount},
		"FileOnDir":   {"No file replaces a folder.", []archive.Mount{{From: "top", To: "apps"}}, nil, archive.ErrMount},
		"UnderFile":   {"A file holds nothing.", []archive.Mount{{To: "README.md/x"}}, nil, archive.ErrMount},
		"UnderLink":   {"Links are not followed.", []archive.Mount{{To: "link/x"}}, nil, archive.ErrMount},
		"OverLink":    {"Links are not replaced.", []archive.Mount{{From: "top", To: "link"}}, nil, archive.ErrMount},
		"FromLink":    {"Links are not mounted.", []archive.Mount{{From: "out", To: "x"}}, nil, archive.ErrMount},
		"Missing":     {"There is no such folder.", []archive.Mount{{From: "missing", To: "x"}}, nil, archive.ErrMount},
		"InsideFile":  {"A file is no folder.", []archive.Mount{{From: "top/x", To: "x"}}, nil, archive.ErrMount},
		"Twice":       {"The first mount is there.", []archive.Mount{{To: "x"}, {To: "x"}}, nil, archive.ErrMount},
		"Deep":        {"Each folder above takes memory.", []archive.Mount{{To: strings.Repeat("a/", 700_000) + "a"}}, nil, archive.ErrLimit},
		"Above":       {"Folders that were made up exist.", []archive.Mount{{To: "x/y"}, {To: "x"}}, nil, archive.ErrMount},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.mounts {
				tc.mounts[i].Tree = planted(t, included())
			}
			tree, err := archive.Overlay(planted(t, base()), archive.Limits{}, tc.mounts...)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\nwant %v, got %v", tc.reason, tc.err, err)
			}
			if err != nil {
				return
			}
			want := map[string]string{}
			for _, name := range untouched {
				want[name] = "base"
			}
			for _, name := range tc.want {
				want[name] = "included"
			}
			if diff := cmp.Diff(want, contents(t, tree)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// contents are the regular files of a tree.
func contents(tb testing.TB, files fs.FS) map[string]string {
	tb.Helper()
	got := map[string]string{}
	check(tb, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		got[name] = string(body)
		return err
	}))
	return got
}

func TestOverlayIsAFileSystem(t *testing.T) {
	t.Parallel()
	files, others := base(), included()
	delete(files, "link")
	delete(others, "out")
	above := planted(t, others)
	tree, err := archive.Overlay(planted(t, files), archive.Limits{},
		archive.Mount{Tree: above, To: "x/y"},
		archive.Mount{Tree: above, From: "run.sh", To: "x/run"},
		archive.Mount{Tree: open(t, mustPack(t, sample(), nil)).Tree, From: "deploy", To: "x/y/deep/deploy"},
		archive.Mount{Tree: above, From: "top", To: "apps/a"},
	)
	check(t, err)
	check(t, fstest.TestFS(tree, "README.md", "apps/a", "x/run", "x/y/top", "x/y/deep/er/file", "x/y/deep/deploy/run.sh"))
	info, err := fs.Stat(tree, "x/run")
	check(t, err)
	if info.Name() != "run" || info.Mode()&0o111 == 0 {
		t.Errorf("a mounted file is %q with mode %v", info.Name(), info.Mode())
	}
}

// TestOverlayEqualsRename does on disk what Flux does, for many trees and mounts.
func TestOverlayEqualsRename(t *testing.T) {
	t.Parallel()
	done := map[bool]int{}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		dir, other := t.TempDir(), t.TempDir()
		growTree(t, random, dir, 3)
		growTree(t, random, other, 3)
		dropLinks(t, dir)
		dropLinks(t, other)
		from, to := somePath(random), somePath(random)

		tree, err := archive.Overlay(planted(t, os.DirFS(dir)), archive.Limits{}, archive.Mount{Tree: planted(t, os.DirFS(other)), From: from, To: to})
		got := map[string]string{}
		if err == nil {
			got = contents(t, tree)
		} else if !errors.Is(err, archive.ErrMount) {
			t.Fatal(err)
		}
		var packed []byte
		if err == nil {
			packed = mustPack(t, tree, nil)
		}

		place := filepath.Join(dir, path.Clean("/"+to))
		making := os.MkdirAll(filepath.Dir(place), 0o700)
		renaming := os.Rename(filepath.Join(other, path.Clean("/"+from)), place)
		want := map[string]string{}
		if making == nil && renaming == nil {
			want = contents(t, os.DirFS(dir))
		}
		if (err == nil) != (making == nil && renaming == nil) {
			t.Fatalf("seed %d, %q to %q: %v, but on disk %v and %v", seed, from, to, err, making, renaming)
		}
		done[err == nil]++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, %q to %q: -want, +got:\n%s", seed, from, to, diff)
		}
		if err == nil && !bytes.Equal(expand(t, reference(t, dir, nil)), expand(t, packed)) {
			t.Fatalf("seed %d, %q to %q: the archives differ", seed, from, to)
		}
	}
	if done[true] < 30 || done[false] < 30 {
		t.Errorf("mounts by success: %v", done)
	}
}

func somePath(random *rand.Rand) string {
	parts := make([]string, random.IntN(4))
	for i := range parts {
		parts[i] = append(someNames, "..", ".", "")[random.IntN(len(someNames)+3)]
	}
	return strings.Join(parts, "/")
}

func dropLinks(tb testing.TB, dir string) {
	tb.Helper()
	check(tb, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			return os.Remove(name)
		}
		return err
	}))
}
