package git_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// newClient makes a client whose options may be changed, and which must leave nothing in its folder.
func newClient(t *testing.T, change ...func(*git.Options)) *git.Client {
	t.Helper()
	return newClientOver(t, transport.Options{AllowLoopback: true}, change...)
}

func newClientOver(t *testing.T, over transport.Options, change ...func(*git.Options)) *git.Client {
	t.Helper()
	factory := transport.New(over)
	t.Cleanup(factory.Close)
	options := git.Options{Transport: factory, TempDir: t.TempDir()}
	for _, c := range change {
		c(&options)
	}
	client, err := git.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(options.TempDir); err != nil || len(left) > 0 {
			t.Errorf("temporary folder: %v, %v", left, err)
		}
	})
	return client
}

// fetch fetches a commit and closes it with the test.
func fetch(t *testing.T, client *git.Client, remote git.Remote, want git.Want) *git.Commit {
	t.Helper()
	commit, err := client.Fetch(t.Context(), remote, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
	})
	return commit
}

// files reads a tree as the fixtures describe one.
func files(t *testing.T, tree fs.FS) upstream.Files {
	t.Helper()
	found := upstream.Files{}
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			target, err := fs.ReadLink(tree, path)
			found[path] = upstream.File{Mode: upstream.Symlink, Content: target}
			return err
		}
		content := read(t, tree, path)
		if info.Size() != int64(len(content)) {
			t.Errorf("%s: size %d, content has %d", path, info.Size(), len(content))
		}
		mode := upstream.Regular
		if info.Mode() == 0o755 {
			mode = upstream.Executable
		} else if info.Mode() != 0o644 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		found[path] = upstream.File{Mode: mode, Content: content}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, tree fs.FS, path string) string {
	t.Helper()
	file, err := tree.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// expected is a tree as git itself sees it, but for submodules: of these there are only folders.
func expected(tree upstream.Files) upstream.Files {
	out := upstream.Files{}
	for path, file := range tree {
		switch file.Mode {
		case "":
			file.Mode = upstream.Regular
		case upstream.Submodule:
			continue
		}
		out[path] = file
	}
	return out
}

// various is a tree with everything that is allowed.
func various() upstream.Files {
	return upstream.Files{
		"README.md":            {Content: "# hello\n"},
		"empty":                {},
		"run.sh":               {Mode: upstream.Executable, Content: "#!/bin/sh\n"},
		"foo/bar.yaml":         {Content: "a: 1\n"},
		"foo.txt":              {Content: "sorts between foo and foo/ in git\n"},
		"foo-bar/x":            {Content: "x"},
		"deep/a/b/c/d/e/f":     {Content: "down here"},
		"link":                 {Mode: upstream.Symlink, Content: "../../outside"},
		"module":               {Mode: upstream.Submodule, Content: strings.Repeat("12", 20)},
		"nul.bin":              {Content: "reserved on Windows only"},
		".gitignore":           {Content: "*.o\n"},
		".github/workflows/x":  {Content: "on: push\n"},
		"back\\slash":          {Content: "a name like any other"},
		"ünï/cödé \x01\n":      {Content: "odd names"},
		"git~2":                {Content: "a short name, but not of .git"},
		"bin":                  {Content: strings.Repeat("\x00\xff", 5000)},
		"a/very/" + longName(): {Content: "long"},
	}
}

func longName() string { return strings.Repeat("n", 250) }

func TestFetchedTreeIsTheCommitsTree(t *testing.T) {
	t.Parallel()
	for name, version2 := range map[string]bool{"version 2": true, "version 0": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := upstream.ForTest(t)
			repository := f.Repository("app")
			repository.Commit("main", "first", upstream.Text(map[string]string{"gone": "x"}))
			hash := repository.Rewrite("main", "Second subject\n\nand a body", various())
			server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
			commit := fetch(t, newClient(t), git.Remote{URL: server.URL("app")}, git.Want{Hash: hash, Ref: "refs/heads/main"})
			if diff := cmp.Diff(expected(repository.Tree(hash)), files(t, commit.Tree())); diff != "" {
				t.Errorf("tree (-git +ours):\n%s", diff)
			}
			if commit.Hash != hash || commit.Subject != "Second subject" {
				t.Errorf("commit: %s %q", commit.Hash, commit.Subject)
			}
			if got, want := commit.CommitterTime.Format(time.RFC3339), repository.Raw("show", "-s", "--format=%cI", hash); got != strings.Replace(want, "+00:00", "Z", 1) && got != want {
				t.Errorf("committer time: want %s, got %s", want, got)
			}
			if commit.BytesReceived < 500 {
				t.Errorf("received %d bytes", commit.BytesReceived)
			}
		})
	}
}

func TestTreeKeepsTheRulesOfFileSystems(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	tree := various()
	delete(tree, "ünï/cödé \x01\n")
	delete(tree, "link") // It leads nowhere, and TestFS wants to follow it.
	delete(tree, "module")
	delete(tree, "back\\slash") // TestFS refuses such names; Git has them.
	hash := repository.Commit("main", "m", tree)
	server := f.HTTP(upstream.HTTPOptions{})
	commit := fetch(t, newClient(t), git.Remote{URL: server.URL("app")}, git.Want{Hash: hash})
	if err := fstest.TestFS(commit.Tree(), "README.md", "foo/bar.yaml", "deep/a/b/c/d/e/f", "run.sh"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"..", "/README.md", "foo/../README.md", "foo/", "", "./foo"} {
		if _, err := commit.Tree().Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("open %q: %v", name, err)
		}
	}
	if _, err := commit.Tree().Open("missing/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open a missing file: %v", err)
	}
	if err := commit.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(commit.Tree(), "README.md"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

func TestOpenDoesNotFollowLinks(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", various())
	commit := fetch(t, newClient(t), git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, git.Want{Hash: hash})
	if file, err := commit.Tree().Open("link"); err == nil {
		t.Errorf("link opened: %v", file)
	}
}

func TestDeniedAddressIsNotDialled(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app")
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClientOver(t, transport.Options{})
	_, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")})
	if !errors.Is(err, transport.ErrDenied) {
		t.Errorf("want %v, got %v", transport.ErrDenied, err)
	}
	if server.Connections() != 0 {
		t.Error("the server was dialled")
	}
}
