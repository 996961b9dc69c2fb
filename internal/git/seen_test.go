package git_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// drafting is a repository whose branch moved on while a draft was open.
type drafting struct {
	*upstream.Fixture
	repository         *upstream.Edited
	before, old, now   string // on the branch: without the package, and with it
	draft, merged      string // on the old one; and what was made of it and of the new one
	oldTree, nowTree   string
	draftTree, oneTree string // of the draft, and of the first of its commits
}

func newDrafting(t *testing.T) drafting {
	t.Helper()
	d := drafting{Fixture: upstream.ForTest(t)}
	d.repository = d.Repository("app")
	edit := func(branch, text string) string {
		return d.repository.Commit(branch, text, upstream.Text(map[string]string{"pkgs/a/Kptfile": text, "pkgs/a/file": noise(20_000) + text}))
	}
	d.before = d.repository.Commit("main", "before", upstream.Text(map[string]string{"pkgs/b/Kptfile": "b"}))
	d.old = edit("main", "old")
	d.repository.SetRef("refs/heads/draft", d.old)
	one := edit("draft", "one")
	for i := range 30 {
		d.draft = edit("draft", fmt.Sprint("draft ", i))
	}
	d.now = edit("main", "now")
	d.merged = d.repository.CommitTree(d.repository.Raw("rev-parse", d.draft+"^{tree}"), "merge", d.draft, d.now)
	d.repository.SetRef("refs/heads/merged", d.merged)
	tree := func(commit string) string { return d.repository.Raw("rev-parse", commit+":pkgs/a") }
	d.oldTree, d.nowTree, d.draftTree, d.oneTree = tree(d.old), tree(d.now), tree(d.draft), tree(one)
	return d
}

// TestWhatADraftWasMadeOnIsSeen, whatever the server can leave out, with and without a cache.
func TestWhatADraftWasMadeOnIsSeen(t *testing.T) {
	t.Parallel()
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrafting(t)
			for _, setting := range server.settings {
				key, value, _ := strings.Cut(setting, "=")
				d.repository.Raw("config", key, value)
			}
			remote := git.Remote{URL: d.HTTP(upstream.HTTPOptions{WithoutV2: server.withoutV2}).URL("app")}
			d.checkSeen(t, newClient(t), remote)
			d.checkSeen(t, newClient(t, keeping(t.TempDir(), &hows{})), remote)
			known := newClient(t, keeping(t.TempDir(), &hows{}))
			fetchAll(t, known, remote, []git.Want{{Hash: d.now, Ref: "refs/heads/main"}, {Hash: d.draft, Ref: "refs/heads/draft"}})
			d.checkSeen(t, known, remote)
			if commits := fetchAll(t, known, remote, []git.Want{{Hash: d.now, Ref: "refs/heads/main"}}); commits[0].BytesReceived > 0 {
				t.Error("what was in the cache is lost")
			}
		})
	}
}

func TestWhatADraftWasMadeOnIsSeenOverSSH(t *testing.T) {
	t.Parallel()
	d := newDrafting(t)
	d.repository.Raw("config", "uploadpack.allowFilter", "true")
	server, as := serveSSH(t, d.Fixture, upstream.SSHOptions{})
	d.checkSeen(t, newClient(t, keeping(t.TempDir(), &hows{})), over(server.URL("app"), as))
}

func (d drafting) checkSeen(t *testing.T, client *git.Client, remote git.Remote) {
	t.Helper()
	draft := git.Want{Hash: d.draft, Ref: "refs/heads/draft"}
	for name, c := range map[string]struct {
		reason string
		what   git.Seen
		want   bool
	}{
		"itself":        {"The draft has it.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.draftTree, Max: 100}, true},
		"first":         {"An earlier commit had it.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.oneTree, Max: 100}, true},
		"base":          {"It was made on it.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.oldTree, Max: 100}, true},
		"upper case":    {"Ids may be written in upper case.", git.Seen{Tip: git.Want{Hash: strings.ToUpper(d.draft)}, Path: "pkgs/a", Tree: strings.ToUpper(d.oldTree), Max: 100}, true},
		"newer":         {"The branch moved on after it.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.nowTree, Max: 100}, false},
		"other":         {"It is of another folder.", git.Seen{Tip: draft, Path: "pkgs/b", Tree: d.oldTree, Max: 100}, false},
		"none":          {"Before, there was no such package.", git.Seen{Tip: draft, Path: "pkgs/a", Max: 100}, true},
		"always":        {"There always was that package.", git.Seen{Tip: draft, Path: "pkgs/b", Max: 100}, false},
		"nowhere":       {"There never was one.", git.Seen{Tip: draft, Path: "pkgs/a/none", Max: 1}, true},
		"just enough":   {"The 32nd commit has it.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.oldTree, Max: 32}, true},
		"too far":       {"It is further back than is looked.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.oldTree, Max: 31}, false},
		"nothing":       {"Nothing is looked at.", git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.draftTree}, false},
		"second parent": {"What was merged is another history.", git.Seen{Tip: git.Want{Hash: d.merged}, Path: "pkgs/a", Tree: d.nowTree, Max: 100}, false},
		"first parent":  {"What it was merged into is not.", git.Seen{Tip: git.Want{Hash: d.merged, Ref: "refs/heads/merged"}, Path: "pkgs/a", Tree: d.oldTree, Max: 100}, true},
	} {
		for range 2 {
			got, err := client.SeenIn(t.Context(), remote, c.what)
			if err != nil || got != c.want {
				t.Errorf("%s: %s want %t, got %t, %v", name, c.reason, c.want, got, err)
			}
		}
	}
	for name, hash := range map[string]string{"absent": strings.Repeat("ab", 20), "no id": "main", "empty": ""} {
		seen, err := client.SeenIn(t.Context(), remote, git.Seen{Tip: git.Want{Hash: hash}, Path: "pkgs/a", Tree: d.oldTree, Max: 100})
		if seen || !errors.Is(err, git.ErrRefNotFound) {
			t.Errorf("%s: want %v, got %t, %v", name, git.ErrRefNotFound, seen, err)
		}
	}
}

// TestLookingBackCostsLittle: no files, nothing when the cache can tell, and nothing for what was asked before.
func TestLookingBackCostsLittle(t *testing.T) {
	t.Parallel()
	d := newDrafting(t)
	d.repository.Raw("config", "uploadpack.allowFilter", "true")
	server := d.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	var received int64
	client := newClient(t, keeping(t.TempDir(), &hows{}), func(o *git.Options) { o.Observe = func(bytes int64) { received += bytes } })
	main, draft := git.Want{Hash: d.old, Ref: "refs/heads/main"}, git.Want{Hash: d.draft, Ref: "refs/heads/draft"}
	fetchAll(t, client, remote, []git.Want{main, draft})
	if got, err := client.LastSeen(t.Context(), remote, git.Seen{Tip: draft, Path: "pkgs/a", Tree: d.oneTree, Max: 100}); err != nil || d.repository.Raw("rev-parse", got+":pkgs/a") != d.oneTree {
		t.Errorf("the first commit of the draft: %q, %v", got, err)
	}
	look := func(what string, tip git.Want, tree string, want bool, asked int, most int64) {
		t.Helper()
		received = 0
		before := server.Count(upstream.Fetch)
		got, err := client.SeenIn(t.Context(), remote, git.Seen{Tip: tip, Path: "pkgs/a", Tree: tree, Max: 100})
		if err != nil || got != want {
			t.Errorf("%s: want %t, got %t, %v", what, want, got, err)
		}
		if times := server.Count(upstream.Fetch) - before; times != asked || received > most {
			t.Errorf("%s: the server was asked %d times, and sent %d bytes", what, times, received)
		}
	}
	look("the draft itself", draft, d.draftTree, true, 0, 0)
	look("the tip of the branch", main, d.oldTree, true, 0, 0)
	look("further back than at first", draft, d.oldTree, true, 2, 20_000)
	look("again", draft, d.oldTree, true, 0, 0)
	look("not there", draft, d.nowTree, false, 2, 20_000)
	look("not there again", draft, d.nowTree, false, 0, 0)
	d.repository.SetRef("refs/heads/next", d.old)
	child := d.repository.Commit("next", "one", upstream.Text(map[string]string{"pkgs/a/Kptfile": "new"}))
	next := git.Want{Hash: child, Ref: "refs/heads/next"}
	fetchAll(t, client, remote, []git.Want{main, draft, next})
	look("a commit on one that is in the cache", next, d.oldTree, true, 0, 0)
}
