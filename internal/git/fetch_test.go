package git_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// history is a repository with commits that are more or less easy to ask for.
type history struct {
	*upstream.Fixture
	repository         *upstream.Edited
	old, tip           string // on main
	side               string // on the branch side
	tagged, annotation string // on no branch, under an annotated tag
	pull               string // under refs/pull/1/head only
	lost               string // under no ref
}

func newHistory(t *testing.T) history {
	t.Helper()
	h := history{Fixture: upstream.ForTest(t)}
	h.repository = h.Repository("app")
	text := func(content string) upstream.Files { return upstream.Text(map[string]string{"file": content}) }
	h.old = h.repository.Commit("main", "old", text("old"))
	h.tip = h.repository.Commit("main", "tip", text("tip"))
	h.side = h.repository.Rewrite("side", "side", text("side"))
	h.repository.Commit("side", "side tip", text("side tip"))
	h.tagged = h.repository.Rewrite("scratch", "tagged", text("tagged"))
	h.annotation = h.repository.Tag("v1.0.0", h.tagged, true)
	h.pull = h.repository.Rewrite("scratch", "pull", text("pull"))
	h.repository.SetRef("refs/pull/1/head", h.pull)
	h.lost = h.repository.Rewrite("scratch", "lost", text("lost"))
	h.repository.DeleteRef("refs/heads/scratch")
	return h
}

func TestEveryCommitCanBeFetched(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	cases := map[string]struct {
		reason string
		want   git.Want
		missV0 bool
	}{
		"branch":        {"The tip of a branch.", git.Want{Hash: h.tip, Ref: "refs/heads/main"}, false},
		"tip by id":     {"The tip by its id alone.", git.Want{Hash: h.tip}, false},
		"upper case":    {"Ids may be written in upper case.", git.Want{Hash: strings.ToUpper(h.tip)}, false},
		"tag":           {"The commit behind an annotated tag.", git.Want{Hash: h.tagged, Ref: "refs/tags/v1.0.0"}, false},
		"tag by id":     {"The commit behind an annotated tag, by its id.", git.Want{Hash: h.tagged}, false},
		"pull request":  {"Any ref will do.", git.Want{Hash: h.pull, Ref: "refs/pull/1/head"}, false},
		"old":           {"A commit in the middle of a branch.", git.Want{Hash: h.old}, false},
		"old on branch": {"The same, with the branch to look on.", git.Want{Hash: h.old, Branch: "main"}, false},
		"side":          {"A commit on another branch than HEAD.", git.Want{Hash: h.side}, false},
		"wrong branch":  {"By id the branch does not matter; in a history it does.", git.Want{Hash: h.side, Branch: "main"}, true},
		"no branch":     {"By id the branch need not exist.", git.Want{Hash: h.side, Branch: "nope"}, true},
		"lost":          {"Git gives out by id what no ref reaches.", git.Want{Hash: h.lost}, true},
	}
	for _, version2 := range []bool{true, false} {
		server := h.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
		client := newClient(t)
		for name, c := range cases {
			commit, err := client.Fetch(t.Context(), git.Remote{URL: server.URL("app")}, c.want)
			if c.missV0 && !version2 {
				if !errors.Is(err, git.ErrRefNotFound) {
					t.Errorf("%s (v2 %t): want %v, got %v", name, version2, git.ErrRefNotFound, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s %s (v2 %t): %v", name, c.reason, version2, err)
				continue
			}
			want := expected(h.repository.Tree(strings.ToLower(c.want.Hash)))
			if diff := cmp.Diff(want, files(t, commit.Tree())); diff != "" {
				t.Errorf("%s (v2 %t): %s", name, version2, diff)
			}
			if err := commit.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestServersOfVersion0MayGiveOutIds(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"uploadpack.allowReachableSHA1InWant", "uploadpack.allowTipSHA1InWant"} {
		h := newHistory(t)
		h.repository.Raw("config", setting, "true")
		server := h.HTTP(upstream.HTTPOptions{WithoutV2: true})
		commit := fetch(t, newClient(t), git.Remote{URL: server.URL("app")}, git.Want{Hash: h.old, Branch: "main"})
		if got := read(t, commit.Tree(), "file"); got != "old" {
			t.Errorf("%s: got %q", setting, got)
		}
	}
}

func TestMissingCommits(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.Repository("empty")
	absent := strings.Repeat("ab", 20)
	cases := map[string]struct {
		reason, name string
		want         git.Want
		err          error
	}{
		"absent":       {"No such object.", "app", git.Want{Hash: absent}, git.ErrRefNotFound},
		"stale ref":    {"The ref has moved and the object is gone.", "app", git.Want{Hash: absent, Ref: "refs/heads/main"}, git.ErrRefNotFound},
		"tree":         {"An id that names no commit.", "app", git.Want{Hash: h.repository.Raw("rev-parse", h.tip+"^{tree}")}, nil},
		"tag object":   {"A tag is no commit.", "app", git.Want{Hash: h.annotation}, git.ErrProtocol},
		"empty":        {"Nothing at all.", "empty", git.Want{Hash: absent}, git.ErrRefNotFound},
		"no hash":      {"Not an id.", "app", git.Want{Hash: "main"}, git.ErrRefNotFound},
		"sha256":       {"An id of the wrong kind.", "app", git.Want{Hash: strings.Repeat("ab", 32)}, git.ErrRefNotFound},
		"no such repo": {"No repository there.", "nope", git.Want{Hash: absent}, git.ErrNotFound},
	}
	for _, version2 := range []bool{true, false} {
		server := h.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
		for name, c := range cases {
			_, err := newClient(t).Fetch(t.Context(), git.Remote{URL: server.URL(c.name)}, c.want)
			if err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%s %s (v2 %t): want %v, got %v", name, c.reason, version2, c.err, err)
			}
		}
	}
}

func TestFetchIsShallow(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	repository.Commit("main", "old", upstream.Files{"large": {Content: noise(1 << 20)}})
	hash := repository.Rewrite("main", "new", upstream.Text(map[string]string{"small": "s"}))
	for _, version2 := range []bool{true, false} {
		server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
		var observed int64
		client := newClient(t, func(o *git.Options) { o.Observe = func(bytes int64) { observed += bytes } })
		commit := fetch(t, client, git.Remote{URL: server.URL("app")}, git.Want{Hash: hash})
		if commit.BytesReceived > 2000 || commit.BytesReceived != observed {
			t.Errorf("v2 %t: received %d, observed %d bytes", version2, commit.BytesReceived, observed)
		}
	}
}

func TestDeltasAreResolved(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	base := noise(40_000)
	tree := upstream.Files{}
	for i := range 60 {
		tree["f/"+strings.Repeat("x", i+1)] = upstream.File{Content: base[:20_000+i*100] + strings.Repeat("y", i) + base[20_000+i*100:]}
	}
	hash := repository.Commit("main", "m", tree)
	repository.Raw("repack", "-adfq", "--depth=50", "--window=50")
	if chains := repository.Raw("verify-pack", "-sv", strings.TrimSpace(repository.Raw("rev-parse", "--git-path", "objects/pack"))+"/"+packName(t, repository)); !strings.Contains(chains, "chain length") {
		t.Fatalf("the fixture has no deltas: %s", chains)
	}
	server := f.HTTP(upstream.HTTPOptions{})
	commit := fetch(t, newClient(t), git.Remote{URL: server.URL("app")}, git.Want{Hash: hash})
	if diff := cmp.Diff(expected(tree), files(t, commit.Tree())); diff != "" {
		t.Error(diff)
	}
	if commit.BytesReceived > 80_000 {
		t.Errorf("received %d bytes: no deltas", commit.BytesReceived)
	}
}

func TestLargePacksGoToAFile(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	repository.Raw("config", "core.compression", "0")
	content := noise(9 << 20)
	hash := repository.Commit("main", "m", upstream.Files{"large": {Content: content}, "small": {Content: "s"}})
	server := f.HTTP(upstream.HTTPOptions{})
	commit := fetch(t, newClient(t), git.Remote{URL: server.URL("app")}, git.Want{Hash: hash})
	if read(t, commit.Tree(), "large") != content || read(t, commit.Tree(), "small") != "s" {
		t.Error("content differs")
	}
}
