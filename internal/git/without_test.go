package git_test

import (
	"errors"
	"io/fs"
	"maps"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestAFolderWithoutOthersHasTheIDOfOneThatNeverHadThem, in a commit, in one that is made, and in a history.
func TestAFolderWithoutOthersHasTheIDOfOneThatNeverHadThem(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	plain := map[string]string{"edge/K": "k", "edge/a": "a", "edge/web.d/a": "a", "edge/apps/a": "a"}
	all := maps.Clone(plain)
	maps.Copy(all, map[string]string{"edge/web/K": "k", "edge/web/x/K": "k", "edge/apps/db/K": "k", "edge/only/y/K": "k"})
	never := w.Commit("main", "plain", upstream.Text(plain))
	want := w.Raw("rev-parse", "main:edge")
	with := w.Commit("main", "all", upstream.Text(all))
	whole := w.Raw("rev-parse", "main:edge")
	marks := []string{"apps/db/K", "none/K", "only/y/K", "web/K", "web/x/K"}

	commit := fetch(t, w.client, w.remote, git.Want{Hash: with})
	objects := w.compose(with)
	for name, id := range map[string]func(...string) (string, error){
		"fetched":  func(marks ...string) (string, error) { return commit.TreeID("edge", marks...) },
		"composed": func(marks ...string) (string, error) { return objects.TreeAt(t.Context(), with, "edge", marks...) },
	} {
		if got, err := id(marks...); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
		if got, err := id("a/K", "K/K", "web.d/K"); got != whole || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, whole)
		}
	}
	if _, err := commit.TreeID("edge/only", "y/K"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := objects.TreeAt(t.Context(), with, "edge/only", "y/K"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	read, err := commit.Folder("edge", marks...)
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string]bool{"apps/a": true, "web.d/a": true, "web": false, "apps/db": false, "only": false} {
		if _, err := read.Stat(name); is != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		path, tree, want string
		without          []string
	}{
		{"edge", want, never, nil},
		{"edge", want, with, marks},
		{"edge", whole, with, marks},
		{"edge/only", "", never, nil},
		{"edge/only", "", with, []string{"y/K"}},
	} {
		seen := git.Seen{Tip: git.Want{Hash: with, Ref: "refs/heads/main"}, Path: c.path, Tree: c.tree, Without: c.without, Max: 10}
		if got, err := w.client.LastSeen(t.Context(), w.remote, seen); got != c.want || err != nil {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

// TestAnEditKeepsFolders that hold a file, whatever comes into the place of what is around them.
func TestAnEditKeepsFolders(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	head := w.Commit("main", "first", upstream.Text(map[string]string{
		"edge/K": "k", "edge/a": "a", "edge/web/K": "k", "edge/web/x/K": "x", "edge/apps/db/K": "k", "edge/apps/a": "a", "edge/loose/a": "a",
	}))
	other := w.Commit("other", "first", upstream.Text(map[string]string{
		"edge/K": "k", "edge/b": "b", "edge/web/K": "another", "edge/apps/b": "b", "edge/new/K": "new",
	}))
	tree := w.Raw("rev-parse", "other:edge")
	marks := []string{"apps/db/K", "loose/K", "new/K", "web/K", "web/x/K"}
	kept := map[string]string{"edge/web/K": "k", "edge/web/x/K": "x", "edge/apps/db/K": "k"}
	plus := func(more map[string]string) map[string]string {
		all := maps.Clone(kept)
		maps.Copy(all, more)
		return all
	}
	files := folder("edge", map[string]string{"b": "b", "apps/b": "b"})
	files.Keep = marks
	inWay := folder("edge", map[string]string{"apps": "a file"})
	inWay.Keep = marks
	for name, c := range map[string]struct {
		edit git.Edit
		want map[string]string
		err  error
	}{
		"files":           {files, plus(map[string]string{"edge/b": "b", "edge/apps/b": "b"}), nil},
		"a tree":          {git.Edit{Path: "edge", Tree: tree, Keep: marks}, plus(map[string]string{"edge/K": "k", "edge/b": "b", "edge/apps/b": "b"}), nil},
		"nothing":         {git.Edit{Path: "edge", Keep: marks}, kept, nil},
		"nothing else":    {git.Edit{Path: "edge/apps", Keep: []string{"db/K"}}, plus(map[string]string{"edge/K": "k", "edge/a": "a", "edge/loose/a": "a"}), nil},
		"a file in a way": {inWay, nil, git.ErrUnsafeTree},
	} {
		objects := w.compose(head, other)
		made, err := objects.Commit(t.Context(), commitOn(head, c.edit))
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/made", Old: w.Raw("for-each-ref", "--format=%(objectname)", "refs/heads/made"), New: made}}})
		got := map[string]string{}
		for name, file := range w.Tree("made") {
			got[name] = file.Content
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	w.sound()
}
