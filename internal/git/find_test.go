package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestFoldersAreFoundByTheirFiles, by trees alone, and what is not a plain file of the name is none.
func TestFoldersAreFoundByTheirFiles(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Files{
		"Kptfile":              {Content: "root"},
		"a/Kptfile":            {Content: "a"},
		"a/sub/deep/Kptfile":   {Content: "b"},
		"a-b/Kptfile":          {Mode: upstream.Executable, Content: "c"},
		"link/Kptfile":         {Mode: upstream.Symlink, Content: "../a/Kptfile"},
		"folder/Kptfile/x":     {Content: "d"},
		"none/kptfile":         {Content: "e"},
		"module":               {Mode: upstream.Submodule, Content: strings.Repeat("12", 20)},
		"same/a/Kptfile":       {Content: "same"},
		"same/b/Kptfile":       {Content: "same"},
		"same/b/other/Kptfile": {Content: "a"},
	})
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	for _, client := range []*git.Client{newClient(t), newClient(t, keeping(t.TempDir(), &hows{}))} {
		for range 2 {
			commit := fetchAll(t, client, remote, []git.Want{{Hash: hash, Ref: "refs/heads/main"}})[0]
			var found []string
			err := commit.Find("Kptfile", func(at git.Found) error {
				found = append(found, at.Dir)
				tree, err := commit.TreeID(at.Dir)
				if err != nil || tree != at.Tree {
					t.Errorf("%s: tree %s, %v, want %s", at.Dir, at.Tree, err, tree)
				}
				if want := repository.Raw("rev-parse", hash+":"+strings.TrimPrefix(at.Dir+"/Kptfile", "./")); at.File != want {
					t.Errorf("%s: file %s, want %s", at.Dir, at.File, want)
				}
				return nil
			})
			want := []string{".", "a-b", "a", "a/sub/deep", "same/a", "same/b", "same/b/other"}
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("found (-want +got): %v\n%s", err, diff)
			}
			found = nil
			err = commit.Find("Kptfile", func(at git.Found) error {
				found = append(found, at.Dir)
				return fs.SkipAll
			})
			if len(found) != 1 || err != nil {
				t.Errorf("after SkipAll: %v, %v", found, err)
			}
			broken := errors.New("broken")
			if err := commit.Find("Kptfile", func(git.Found) error { return broken }); err != broken { //nolint:errorlint // It is the same one.
				t.Errorf("want %v, got %v", broken, err)
			}
		}
	}
}

// TestWhatLeadsElsewhereIsNotFound, and what has no end is given up.
func TestWhatLeadsElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	file := upstream.Entry{Mode: "100644", Name: "Kptfile", Hash: repository.Object("blob", []byte("x"))}
	dir := func(name, hash string) upstream.Entry {
		return upstream.Entry{Mode: "40000", Name: name, Hash: hash}
	}
	found, empty := repository.RawTree(file), repository.RawTree()
	nested := found
	for range 12 {
		nested = repository.RawTree(dir("in", nested))
	}
	bomb, hollow := found, empty
	for range 10 {
		bomb, hollow = repository.RawTree(dir("a", bomb), dir("b", bomb)), repository.RawTree(dir("a", hollow), dir("b", hollow))
	}
	cases := map[string]struct {
		reason string
		root   string
		want   error
		dirs   []string
	}{
		"above":   {"It would be found outside.", repository.RawTree(dir("..", found)), git.ErrUnsafeTree, nil},
		"git":     {"It would be Git's own folder.", repository.RawTree(dir(".GIT", found)), git.ErrUnsafeTree, nil},
		"twice":   {"Nobody can tell which one is meant.", repository.RawTree(dir("a", found), dir("a", found)), git.ErrUnsafeTree, []string{"a"}},
		"deep":    {"It is nested deeper than may be.", repository.RawTree(dir("a", nested)), git.ErrLimit, nil},
		"many":    {"It is found too often.", repository.RawTree(dir("a", bomb)), git.ErrLimit, nil},
		"nothing": {"Nothing is found too often.", repository.RawTree(dir("a", hollow)), git.ErrLimit, nil},
		"empty":   {"There may be nothing.", empty, nil, nil},
		"folder":  {"A folder is no file.", repository.RawTree(dir("Kptfile", found)), nil, []string{"Kptfile"}},
	}
	var wants []git.Want
	var names []string
	for name, c := range cases {
		hash := repository.CommitTree(c.root, name)
		repository.SetRef("refs/heads/"+name, hash)
		wants, names = append(wants, git.Want{Hash: hash, Ref: "refs/heads/" + name}), append(names, name)
	}
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	limits := func(o *git.Options) { o.MaxTreeDepth, o.MaxFiles = 12, 1000 }
	for _, client := range []*git.Client{newClient(t, limits), newClient(t, keeping(t.TempDir(), &hows{}), limits)} {
		for range 2 {
			for i, commit := range fetchAll(t, client, remote, wants) {
				c, dirs := cases[names[i]], []string(nil)
				err := commit.Find("Kptfile", func(at git.Found) error {
					dirs = append(dirs, at.Dir)
					return nil
				})
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("%s: %s want %v, got %v", names[i], c.reason, c.want, err)
				}
				if names[i] != "many" && !slices.Equal(dirs, c.dirs) {
					t.Errorf("%s: found %v, want %v", names[i], dirs, c.dirs)
				}
			}
		}
	}
}

// TestPathsLeadToFoldersAndFiles, and to nothing else.
func TestPathsLeadToFoldersAndFiles(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Files{
		"file": {Content: "content"}, "a/b/c": {Content: noise(5000)}, "a.b/x": {Content: "x"}, "link": {Mode: upstream.Symlink, Content: "a"},
		"module": {Mode: upstream.Submodule, Content: strings.Repeat("12", 20)},
	})
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	commit := fetchAll(t, newClient(t), remote, []git.Want{{Hash: hash, Ref: "refs/heads/main"}})[0]
	for path, want := range map[string]error{
		"": nil, ".": nil, "a": nil, "a/b": nil, "a.b": nil,
		"file": fs.ErrNotExist, "link": fs.ErrNotExist, "module": fs.ErrNotExist, "a/b/c": fs.ErrNotExist, "none": fs.ErrNotExist, "file/x": fs.ErrNotExist,
		"/a": fs.ErrInvalid, "a/": fs.ErrInvalid, "a//b": fs.ErrInvalid, "../a": fs.ErrInvalid, "a/./b": fs.ErrInvalid,
	} {
		id, err := commit.TreeID(path)
		if !errors.Is(err, want) {
			t.Errorf("%q: want %v, got %v", path, want, err)
		}
		folder, ferr := commit.Folder(path)
		if !errors.Is(ferr, want) {
			t.Errorf("folder %q: want %v, got %v", path, want, ferr)
		}
		if want != nil {
			continue
		}
		if git := repository.Raw("rev-parse", hash+":"+strings.TrimPrefix(path, ".")); id != git && path != "." || id != fmt.Sprintf("%x", folder.Root.ID) {
			t.Errorf("%q: tree %s, and %x, want %s", path, id, folder.Root.ID, git)
		}
	}
	inside, err := commit.Folder("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(upstream.Files{"b/c": {Mode: upstream.Regular, Content: noise(5000)}}, files(t, inside)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	for path, want := range map[string]error{
		"file": nil, "a/b/c": git.ErrLimit, "link": fs.ErrNotExist, "a": fs.ErrNotExist, "none/file": fs.ErrNotExist, "": fs.ErrInvalid, "a/..": fs.ErrInvalid,
	} {
		content, err := commit.ReadFile(path, 4999)
		if !errors.Is(err, want) || want == nil && string(content) != "content" {
			t.Errorf("read %q: %q, want %v, got %v", path, content, want, err)
		}
	}
	if content, err := commit.ReadFile("a/b/c", 5000); err != nil || string(content) != noise(5000) {
		t.Errorf("a file of the most bytes: %d, %v", len(content), err)
	}
}
