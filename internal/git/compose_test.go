package git_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

// sent is how many objects the last push sent.
func (w *writer) sent() int {
	w.t.Helper()
	for _, request := range slices.Backward(w.server.Requests()) {
		if request.Kind == upstream.Push {
			_, pack, found := bytes.Cut(request.Body, []byte("PACK"))
			if !found {
				return -1
			}
			return int(binary.BigEndian.Uint32(pack[4:]))
		}
	}
	w.t.Fatal("there was no push")
	return 0
}

// TestOnlyWhatIsNewIsSent: neither files and folders that are as before, nor files that are elsewhere in the base.
func TestOnlyWhatIsNewIsSent(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	contents := map[string]string{"big": noise(500_000)}
	for i := range 200 {
		contents[fmt.Sprintf("f%d/x", i)] = strconv.Itoa(i)
	}
	in := func(path string, change map[string]string) git.Edit {
		all := maps.Clone(contents)
		maps.Copy(all, change)
		return folder(path, all)
	}
	files := upstream.Files{}
	for name, content := range contents {
		files["a/pkg/"+name] = upstream.File{Content: content}
	}
	head := w.Commit("main", "first", files)
	for _, c := range []struct {
		reason string
		edit   git.Edit
		want   int
	}{
		{"Nothing has changed but that there is a commit.", in("a/pkg", nil), 1},
		{"A commit, four folders, a file.", in("a/pkg", map[string]string{"f7/x": "seven"}), 6},
		{"A commit and two folders; the third is known under another name.", in("a/copy", map[string]string{"f7/x": "seven"}), 3},
		{"A commit and two folders, which are as they were: the base has no history.", git.Edit{Path: "a/copy"}, 3},
		{"A commit, the root and the folder a: the file is there as well.", folder("b", map[string]string{"big": contents["big"]}), 3},
	} {
		objects := w.compose(head)
		next := w.commit(objects, commitOn(head, c.edit))
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: head, New: next}}})
		if got := w.sent(); got != c.want {
			t.Errorf("%d objects sent, want %d: %s", got, c.want, c.reason)
		}
		head = next
	}
	objects := w.compose(head)
	tree, err := objects.TreeAt(t.Context(), head, "")
	if err != nil || tree != w.Raw("rev-parse", "main^{tree}") {
		t.Errorf("tree %s, %v", tree, err)
	}
	w.sound()
}

// TestWhatTheServerMayHaveForgottenIsSent: that something lies in the cache says nothing about the server.
func TestWhatTheServerMayHaveForgottenIsSent(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http", keeping(t.TempDir(), &hows{}))
	draft := w.Commit("draft", "draft", upstream.Text(map[string]string{"p/a": "of the draft", "q": "q"}))
	fetch(t, w.client, w.remote, git.Want{Hash: draft, Ref: "refs/heads/draft"})
	main := w.Commit("main", "main", upstream.Text(map[string]string{"m": "m"}))
	w.DeleteRef("refs/heads/draft")
	w.Raw("prune", "--expire=now")
	objects := w.compose(main)
	next := w.commit(objects, commitOn(main, folder("p", map[string]string{"a": "of the draft"})))
	w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: main, New: next}}})
	w.sound()
}

// TestCommitsStandOnEachOther before any of them is pushed, and only what the pushed ones need is sent.
func TestCommitsStandOnEachOther(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	first := w.Commit("main", "first", various())
	objects := w.compose(first)
	one := w.commit(objects, commitOn(first, folder("pkg", map[string]string{"a": "1"})))
	two := w.commit(objects, commitOn(one, folder("pkg/sub", map[string]string{"b": "2"})))
	w.commit(objects, commitOn(one, folder("other", map[string]string{"never": "pushed"})))
	three := commitOn(two, folder("pkg", map[string]string{"a": "1", "sub/b": "3"}))
	three.Parents = []string{two, first}
	merged := w.commit(objects, three)
	w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/draft", New: merged}}})
	if got, want := w.sent(), 4+5+5; got != want { // Commits, their folders, and a file each.
		t.Errorf("%d objects sent, want %d", got, want)
	}
	if got := w.Raw("rev-parse", "draft^", "draft^^", "draft^2"); got != two+"\n"+one+"\n"+first {
		t.Errorf("parents: %s", got)
	}
	if got := w.Raw("show", "draft:pkg/sub/b"); got != "3" {
		t.Errorf("pkg/sub/b: %s", got)
	}
	w.sound()
}

func TestPathsThatAreNotSafeAreRefused(t *testing.T) {
	t.Parallel()
	objects := newClient(t, func(o *git.Options) {
		o.MaxTreeDepth, o.MaxFiles = 10, 3
	}).Compose(t.Context())
	t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	})
	file := func(path string) git.Edit {
		return git.Edit{Path: "pkg", Files: []git.File{{Path: path, Mode: 0o644}}}
	}
	link := func(path, target string) git.Edit {
		return git.Edit{Path: "pkg", Files: []git.File{{Path: path, Mode: fs.ModeSymlink, Content: []byte(target)}}}
	}
	mode := func(mode fs.FileMode) git.Edit { return git.Edit{Files: []git.File{{Path: "a", Mode: mode}}} }
	both := func(a, b string) git.Edit {
		return git.Edit{Path: "pkg", Files: []git.File{{Path: a, Mode: 0o644}, {Path: b, Mode: 0o644}}}
	}
	for name, c := range map[string]struct {
		edit git.Edit
		want error
	}{
		"parent": {file("../a"), git.ErrUnsafeTree}, "dot": {file("a/./b"), git.ErrUnsafeTree}, "absolute": {file("/a"), git.ErrUnsafeTree},
		"empty": {file(""), git.ErrUnsafeTree}, "slash": {file("a/"), git.ErrUnsafeTree}, "double slash": {file("a//b"), git.ErrUnsafeTree},
		"git": {file(".git/config"), git.ErrUnsafeTree}, "GIT": {file("a/.GIT"), git.ErrUnsafeTree}, "short": {file("GIT~1/hooks"), git.ErrUnsafeTree},
		"stream": {file(".git::$INDEX_ALLOCATION/x"), git.ErrUnsafeTree}, "hfs": {file(".g\u200cit/x"), git.ErrUnsafeTree},
		"backslash": {file(`..\a`), git.ErrUnsafeTree}, "nul": {file("a\x00b"), git.ErrUnsafeTree},
		"long": {file(strings.Repeat("n", 256)), git.ErrLimit}, "deep": {file(strings.Repeat("d/", 10) + "f"), git.ErrLimit},
		"root": {folder("", map[string]string{"": ""}), git.ErrUnsafeTree}, "root dot": {folder("", map[string]string{".": ""}), git.ErrUnsafeTree},
		"folder": {git.Edit{Path: "a/../b"}, git.ErrUnsafeTree}, "folder git": {git.Edit{Path: ".git"}, git.ErrUnsafeTree},
		"twice": {both("a", "a"), git.ErrUnsafeTree}, "file and folder": {both("a", "a/b"), git.ErrUnsafeTree}, "folder and file": {both("a/b", "a"), git.ErrUnsafeTree},
		"device": {mode(fs.ModeDevice), git.ErrUnsafeTree}, "directory": {mode(fs.ModeDir), git.ErrUnsafeTree}, "submodule": {mode(fs.ModeIrregular), git.ErrUnsafeTree},
		"no target": {link("a", ""), git.ErrUnsafeTree}, "long target": {link("a", strings.Repeat("t", 5000)), git.ErrUnsafeTree},
		"nul target": {link("a", "b\x00"), git.ErrUnsafeTree}, "modules": {link(".GITmodules", "a"), git.ErrUnsafeTree},
		"too many": {git.Edit{Files: make([]git.File, 4)}, git.ErrLimit},
	} {
		id, err := objects.Commit(t.Context(), commitOn("", c.edit))
		if !errors.Is(err, c.want) || id != "" {
			t.Errorf("%s: %s, %v, want %v", name, id, err, c.want)
		}
		checkError(t, name, err, c.want)
	}
	for _, base := range []string{strings.Repeat("ab", 20), "main", strings.Repeat("ab", 32)} {
		_, err := objects.Commit(t.Context(), commitOn(base))
		checkError(t, "base", err, git.ErrRefNotFound)
	}
}

// TestNothingEndsAnIdentityOrAMessage but what Git ends them with.
func TestNothingEndsAnIdentityOrAMessage(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	objects := w.compose()
	when := time.Date(2025, 6, 7, 8, 9, 10, 11, time.FixedZone("", -(9*60+30)*60))
	var updates []git.Update
	wants := map[string]string{}
	for name, c := range map[string]struct{ name, email, message, want string }{
		"plain":       {"Ada L.", "a@b.c", "Hello", "Ada L|a@b.c|Hello"},
		"injected":    {"Ada\ncommitter Eve <e@e.e> 1 +0000\n\nx", "a@b.c>\nparent 00", "Hello", "Ada committer Eve e@e.e 1 +0000 x|a@b.cparent00|Hello"},
		"brackets":    {"<Ada>", "<<a@b.c>>", "See <a> & >b<", "Ada|a@b.c|See <a> & >b<"},
		"crud":        {" .,:;\"'\\Ada\\'", " a@b.c ,", "\n\n Hello \n\n", "Ada|a@b.c|Hello"},
		"bytes":       {"Ad\xffa\x00", "a\x1b@b.c", "He\x00ll\x1b[31mo\r\nthere\x7f\xfe", "Ad\ufffda|a@b.c|Hell[31mo\nthere\ufffd"},
		"unicode":     {"Ådä \u2028 洛", "ä@b.c", "Grüße\n\n\tindented", "Ådä 洛|ä@b.c|Grüße\n\n\tindented"},
		"no message":  {"Ada", "a@b.c", " \n\x00", "Ada|a@b.c|(no message)"},
		"header like": {"Ada", "a@b.c", "tree 123\nauthor x <y> 1 +0000\ngpgsig x", "Ada|a@b.c|tree 123\nauthor x <y> 1 +0000\ngpgsig x"},
	} {
		n := commitOn("")
		n.Author = git.Identity{Name: c.name, Email: c.email, When: when}
		n.Committer, n.Message = n.Author, c.message
		id := w.commit(objects, n)
		updates = append(updates, git.Update{Ref: "refs/heads/" + strings.ReplaceAll(name, " ", "-"), New: id})
		wants[id] = c.want
	}
	w.moves(git.PushRequest{Objects: objects, Updates: updates})
	for _, u := range updates {
		got := w.Raw("log", "-1", "--format=%an|%ae|%B", u.New)
		if diff := cmp.Diff(wants[u.New], got); diff != "" {
			t.Errorf("%s (-want +git):\n%s", u.Ref, diff)
		}
		if got := w.Raw("log", "-1", "--format=%aI %cI %P", u.New); got != "2025-06-07T08:09:10-09:30 2025-06-07T08:09:10-09:30" {
			t.Errorf("%s: %s", u.Ref, got)
		}
	}
	w.sound()

	for name, bad := range map[string]git.Identity{
		"no name": {Email: "a@b.c", When: when}, "no email": {Name: "Ada", When: when}, "no time": {Name: "Ada", Email: "a@b.c"},
		"nothing left": {Name: "<>\n", Email: "a@b.c", When: when}, "long": {Name: strings.Repeat("A", 2000), Email: "a@b.c", When: when},
	} {
		for _, author := range []bool{true, false} {
			n := commitOn("")
			if n.Committer = bad; author {
				n.Author, n.Committer = bad, ada()
			}
			_, err := objects.Commit(t.Context(), n)
			checkError(t, name, err, git.ErrIdentity)
		}
	}
	n := commitOn("")
	n.Message = strings.Repeat("long ", 200_000)
	_, err := objects.Commit(t.Context(), n)
	checkError(t, "message", err, git.ErrLimit)
	n = commitOn("")
	n.Parents = []string{"HEAD"}
	_, err = objects.Commit(t.Context(), n)
	checkError(t, "parent", err, git.ErrProtocol)
}

// TestNewObjectsKeepToTheLimits of what could be fetched again, and to the memory that there is.
func TestNewObjectsKeepToTheLimits(t *testing.T) {
	t.Parallel()
	large := folder("a", map[string]string{"zeros": strings.Repeat("\x00", 1<<20), "noise": noise(100_000)})
	for name, change := range map[string]func(*git.Options){
		"object":   func(o *git.Options) { o.MaxObjectBytes = 1<<20 - 1 },
		"unpacked": func(o *git.Options) { o.MaxUnpackedBytes = 1 << 20 },
		"pack":     func(o *git.Options) { o.MaxPackBytes = 90_000 },
		"objects":  func(o *git.Options) { o.MaxObjects = 3 },
	} {
		objects := newClient(t, change).Compose(t.Context())
		_, err := objects.Commit(t.Context(), commitOn("", large))
		checkError(t, name, err, git.ErrLimit)
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLargeCommitsAreSpooled: what is new takes little memory, and goes away with the objects.
func TestLargeCommitsAreSpooled(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	contents := map[string]string{}
	for i := range 30 {
		contents[strconv.Itoa(i)] = noise(1<<20) + strconv.Itoa(i)
	}
	budget := memory.New(32<<20, "--memory=32Mi")
	err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		objects := w.client.Compose(ctx)
		id, err := objects.Commit(ctx, commitOn("", folder("a", contents)))
		if err != nil {
			return errors.Join(err, objects.Close())
		}
		results, err := w.client.Push(ctx, w.remote, git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: id}}})
		if err == nil {
			err = results[0].Err
		}
		return errors.Join(err, objects.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(upstream.Text(contents)["7"].Content == w.Tree("main")["a/7"].Content, true); diff != "" {
		t.Error("a file is another one")
	}
	w.sound()
}

// TestEditsOfFolders are made one after the other, and each does what it says and no more.
func TestEditsOfFolders(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	before := map[string]string{"a/x": "x", "a/y/z": "z", "b/c/d": "d", "b/e": "e", "f": "f"}
	first := w.Commit("main", "first", upstream.Text(before))
	objects := w.compose(first)
	treeOf := func(path string) string { return w.Raw("rev-parse", first+":"+path) }
	file := func(path, content string) git.Edit {
		return folder(path, map[string]string{"n": content})
	}
	empty := w.commit(objects, commitOn(first, git.Edit{Path: ""}))
	nothing, err := objects.TreeAt(t.Context(), empty, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		reason string
		edits  []git.Edit
		gone   []string
		fresh  map[string]string
	}{
		{"Nothing is asked for.", nil, nil, nil},
		{"A folder that is not there is gone already.", []git.Edit{{Path: "none/at/all"}}, nil, nil},
		{"A file is no folder, and stays.", []git.Edit{{Path: "f"}, {Path: "f/below"}}, nil, nil},
		{"Empty folders go with what was in them.", []git.Edit{{Path: "b/c"}, {Path: "a/y"}}, []string{"b/c/d", "a/y/z"}, nil},
		{"All of it goes.", []git.Edit{{Path: "b/c"}, {Path: "b"}}, []string{"b/c/d", "b/e"}, nil},
		{"The root is a folder like others.", []git.Edit{file("", "n")}, []string{"a/x", "a/y/z", "b/c/d", "b/e", "f"}, map[string]string{"n": "n"}},
		{"The last edit counts.", []git.Edit{file("a", "1"), file("a", "2")}, []string{"a/x", "a/y/z"}, map[string]string{"a/n": "2"}},
		{"A folder in one that was replaced.", []git.Edit{file("a", "1"), file("a/y", "2")}, []string{"a/x", "a/y/z"}, map[string]string{"a/n": "1", "a/y/n": "2"}},
		{"The outer one takes the inner one away.", []git.Edit{file("a/y", "2"), file("a", "1")}, []string{"a/x", "a/y/z"}, map[string]string{"a/n": "1"}},
		{"Gone and back.", []git.Edit{{Path: "a"}, folder("a", map[string]string{"x": "x", "y/z": "z"})}, nil, nil},
		{"A folder by its id.", []git.Edit{{Path: "new/place", Tree: treeOf("a")}}, nil, map[string]string{"new/place/x": "x", "new/place/y/z": "z"}},
		{"A folder by its id, in the place of a file and of a folder.", []git.Edit{{Path: "f", Tree: treeOf("b/c")}, {Path: "b", Tree: treeOf("a/y")}}, []string{"f", "b/c/d", "b/e"}, map[string]string{"f/d": "d", "b/z": "z"}},
		{"Of a folder without entries there is none.", []git.Edit{{Path: "a", Tree: nothing}}, []string{"a/x", "a/y/z"}, nil},
	} {
		want := maps.Clone(before)
		for _, path := range c.gone {
			delete(want, path)
		}
		maps.Copy(want, c.fresh)
		id := w.commit(objects, commitOn(first, c.edits...))
		ref := fmt.Sprint("refs/heads/", i)
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: ref, New: id}}})
		if diff := cmp.Diff(upstream.Text(want), w.Tree(ref)); diff != "" {
			t.Errorf("%d: %s (-want +git):\n%s", i, c.reason, diff)
		}
	}
	w.sound()
	for name, edit := range map[string]git.Edit{
		"unknown": {Path: "a", Tree: strings.Repeat("ab", 20)}, "a file": {Path: "a", Tree: treeOf("f")}, "no id": {Path: "a", Tree: "HEAD:a"},
		"the root": {Tree: treeOf("a")}, "files as well": {Path: "a", Tree: treeOf("a"), Files: file("a", "").Files},
	} {
		_, err := objects.Commit(t.Context(), commitOn(first, edit))
		checkError(t, name, err, nil)
	}
}

// TestOnlyBasesAreBuiltUpon: that a commit lies beside a base says nothing about the server.
func TestOnlyBasesAreBuiltUpon(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http", keeping(t.TempDir(), &hows{}))
	first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	fetch(t, w.client, w.remote, git.Want{Hash: first, Ref: "refs/heads/main"})
	second := w.Commit("main", "second", upstream.Text(map[string]string{"a": "2"}))
	objects := w.compose(second)
	_, err := objects.Commit(t.Context(), commitOn(first))
	checkError(t, "commit", err, git.ErrRefNotFound)
	_, err = objects.TreeAt(t.Context(), first, "")
	checkError(t, "tree", err, git.ErrRefNotFound)
}
