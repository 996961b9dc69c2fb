package git_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestTreeIsWhatACheckoutMakes walks what git itself puts on disk: a folder for a submodule, and none for a tree in
// which there are only trees.
func TestTreeIsWhatACheckoutMakes(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	blob := repository.Object("blob", []byte("content"))
	target := repository.Object("blob", []byte("../file"))
	empty := repository.RawTree()
	dir := func(name, hash string) upstream.Entry {
		return upstream.Entry{Mode: "40000", Name: name, Hash: hash}
	}
	module := upstream.Entry{Mode: "160000", Name: "module", Hash: strings.Repeat("12", 20)}
	hollow := repository.RawTree(dir("a", empty), dir("b", repository.RawTree(dir("c", empty))))
	root := repository.RawTree(
		upstream.Entry{Mode: "100644", Name: "a-file", Hash: blob},
		dir("empty", empty),
		dir("hollow", hollow),
		dir("linked", repository.RawTree(upstream.Entry{Mode: "120000", Name: "link", Hash: target})),
		dir("mixed", repository.RawTree(dir("empty", empty), upstream.Entry{Mode: "100755", Name: "run", Hash: blob})),
		module,
		dir("modules", repository.RawTree(dir("empty", empty), module)),
	)
	hash := repository.CommitTree(root, "m")
	repository.SetRef("refs/heads/main", hash)
	if err := repository.SetHead("main"); err != nil {
		t.Fatal(err)
	}
	checkout := filepath.Join(t.TempDir(), "checkout")
	repository.Raw("clone", "--quiet", ".", checkout)
	if err := os.RemoveAll(filepath.Join(checkout, ".git")); err != nil {
		t.Fatal(err)
	}

	commit := fetch(t, newClient(t), git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, git.Want{Hash: hash})
	got := listing(t, commit.Tree())
	if diff := cmp.Diff(listing(t, os.DirFS(checkout)), got); diff != "" {
		t.Errorf("tree (-checkout +ours):\n%s", diff)
	}
	if got["modules/module"] != fs.ModeDir {
		t.Errorf("the submodule is %v", got["modules/module"])
	}
	if diff := cmp.Diff(archived(t, os.DirFS(checkout)), archived(t, commit.Tree())); diff != "" {
		t.Error("the archive of the commit is not that of its checkout")
	}
	entries, err := fs.ReadDir(commit.Tree(), "module")
	if err != nil || len(entries) > 0 {
		t.Errorf("submodule: %v, %v", entries, err)
	}
	info, err := fs.Stat(commit.Tree(), "module")
	if err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("submodule: %v, %v", info, err)
	}
}

// listing is every path with its kind, and whether a file may be executed.
func listing(t *testing.T, tree fs.FS) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[path] = info.Mode().Type()
		if info.Mode().IsRegular() {
			found[path] |= info.Mode() & 0o100
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func archived(t *testing.T, tree fs.FS) []byte {
	t.Helper()
	var packed bytes.Buffer
	if err := archive.Write(t.Context(), &packed, tree, nil, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
