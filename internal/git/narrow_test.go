package git_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestOnlyWhatIsNeededIsFetched where the server can leave the rest out, and all of it elsewhere.
func TestOnlyWhatIsNeededIsFetched(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository, first := newFleet(t, f, 400)
	size := len(repository.Raw("cat-file", "-p", first+":"+upstream.BulkPath(0)))
	folder := path.Dir(upstream.BulkPath(0))
	isNeeded := func(name string) bool { return strings.HasPrefix(name, folder+"/") }
	second := repository.touch(1, "inside")
	third := repository.touch(399, "outside")
	look := func(client *git.Client, remote git.Remote, hash string, want git.Want) *git.Commit {
		t.Helper()
		want.Hash, want.Ref = hash, "refs/heads/main"
		commit := fetch(t, client, remote, want)
		tree, err := commit.Tree().Only(want.Paths)
		if err != nil {
			t.Fatal(err)
		}
		all := expected(repository.Tree(hash))
		for name := range all {
			if want.Paths != nil && !isNeeded(name) {
				delete(all, name)
			}
		}
		if diff := cmp.Diff(all, files(t, tree)); diff != "" {
			t.Fatalf("%s (-git +ours):\n%s", hash, diff)
		}
		return commit
	}
	paths := git.Want{Paths: []string{folder}}
	seen := &hows{}
	hadBy := func(what string, want ...git.How) {
		t.Helper()
		if got := seen.take(); !slices.Equal(got, want) {
			t.Errorf("%s: had by %v, want %v", what, got, want)
		}
	}
	plain := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	look(newClient(t, keeping(t.TempDir(), seen)), plain, first, paths)
	hadBy("a server that leaves nothing out", git.Whole)

	repository.Raw("config", "uploadpack.allowFilter", "true")
	old := git.Remote{URL: f.HTTP(upstream.HTTPOptions{WithoutV2: true}).URL("app")}
	look(newClient(t, keeping(t.TempDir(), seen)), old, third, paths)
	hadBy("version 0", git.Whole)
	look(newClient(t), plain, first, paths)

	client := newClient(t, keeping(t.TempDir(), seen))
	if got := look(client, plain, first, paths).BytesReceived; got > int64(20_000+5*size) {
		t.Errorf("for four files %d bytes came", got)
	}
	hadBy("at first", git.Selected)
	look(client, plain, first, paths)
	hadBy("again", git.FromCache)
	if got := look(client, plain, second, paths).BytesReceived; got > int64(3000+size) {
		t.Errorf("for one file %d bytes came", got)
	}
	hadBy("a change inside", git.Selected)
	if got := look(client, plain, third, paths).BytesReceived; got > 2000 {
		t.Errorf("for no file %d bytes came", got)
	}
	hadBy("a change outside", git.Selected)
	keep := git.Want{Keep: func(name string, _ bool) bool { return name != "teams" }}
	keep.Hash, keep.Ref = third, "refs/heads/main"
	fetch(t, client, plain, keep)
	hadBy("of the root alone", git.FromCache)
	look(client, plain, third, git.Want{})
	hadBy("all of it", git.Whole)
	fourth := repository.touch(0, "more")
	look(client, plain, fourth, paths)
	hadBy("beside all of it", git.Incremental)
}

// TestWhatIsNotNeededIsNotHeldAgainstTheLimits, however the commit was fetched.
func TestWhatIsNotNeededIsNotHeldAgainstTheLimits(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	many := map[string]string{"few/a": "a"}
	for i := range 20 {
		many[fmt.Sprint("many/", i)] = fmt.Sprint(i)
	}
	hash := repository.Commit("main", "m", upstream.Text(many))
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	whole := git.Want{Hash: hash, Ref: "refs/heads/main"}
	sparse, listed := whole, whole
	sparse.Paths, listed.Keep = []string{"few"}, func(name string, _ bool) bool { return name == "few" }
	few := func(o *git.Options) { o.MaxFiles = 10 }
	open := func(client *git.Client, want git.Want) error {
		commit, err := client.Fetch(t.Context(), remote, want)
		if err == nil {
			err = commit.Close()
		}
		return err
	}
	for _, filter := range []string{"false", "true"} {
		repository.Raw("config", "uploadpack.allowFilter", filter)
		for _, client := range []*git.Client{newClient(t, few), newClient(t, keeping(t.TempDir(), &hows{}), few)} {
			for _, want := range []git.Want{sparse, listed, whole, sparse, listed} {
				err := open(client, want)
				if isWhole := want.Paths == nil && want.Keep == nil; isWhole != errors.Is(err, git.ErrLimit) || isWhole != (err != nil) {
					t.Errorf("filter %s, all of it %t: %v", filter, isWhole, err)
				}
			}
		}
	}
}

// TestFilesThatCannotBeKeptAreFetched with all others.
func TestFilesThatCannotBeKeptAreFetched(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	repository.Raw("config", "uploadpack.allowFilter", "true")
	hash := repository.Commit("main", "m", upstream.Text(map[string]string{"a/file": "a", "b/file": "b"}))
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen, dir, failed := &hows{}, t.TempDir(), 0
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.CacheFailed = func(error) { failed++ } })
	want := git.Want{Hash: hash, Ref: "refs/heads/main", Paths: []string{"a"}}
	fetch(t, client, remote, want)
	// There is no room for another index.
	if err := os.Mkdir(file(t, dir, "index")+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	want.Paths = []string{"b"}
	if got := read(t, fetch(t, client, remote, want).Tree(), "b/file"); got != "b" {
		t.Errorf("the file has %q", got)
	}
	if got := seen.take(); failed == 0 || !slices.Equal(got, []git.How{git.Selected, git.Whole}) {
		t.Errorf("had by %v, %d failures of the cache were told", got, failed)
	}
}
