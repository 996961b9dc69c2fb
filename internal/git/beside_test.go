package git_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestCommitsBesideABranchAreFound on every kind of server, in one request.
func TestCommitsBesideABranchAreFound(t *testing.T) {
	t.Parallel()
	for name, kind := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			for _, setting := range kind.settings {
				key, value, _ := strings.Cut(setting, "=")
				h.repository.Raw("config", key, value)
			}
			onto := h.repository.CommitTree(h.repository.Raw("rev-parse", h.side+"^{tree}"), "onto", h.old)
			merged := h.repository.CommitTree(h.repository.Raw("rev-parse", h.side+"^{tree}"), "merged", onto, h.tip)
			h.repository.SetRef("refs/heads/onto", onto)
			h.repository.SetRef("refs/heads/merged", merged)
			h.repository.SetRef("refs/heads/aside", h.side)
			h.repository.SetRef("refs/heads/then", h.old)
			server := h.HTTP(upstream.HTTPOptions{WithoutV2: kind.withoutV2})
			client, remote := newClient(t), git.Remote{URL: server.URL("app")}
			h.repository.Tag("old", h.old, false)
			h.repository.Tag("aside", h.side, true)
			tip := git.Want{Hash: h.tip, Ref: "refs/heads/main"}
			all := []git.Want{
				{Hash: h.old}, {Hash: h.tip}, {Hash: h.side, Tag: h.repository.Raw("rev-parse", "refs/tags/aside")}, {Hash: h.tagged, Tag: h.annotation},
			}
			found, err := client.Beside(t.Context(), remote, tip, all)
			want := []string{h.side, h.tagged}
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" || err != nil {
				t.Error(diff, err)
			}
			server.Reset()
			if found, err := client.Beside(t.Context(), remote, tip, all[:2]); len(found) > 0 || err != nil || server.Count(upstream.Fetch) > 2 {
				t.Errorf("%v after %d fetches: %v", found, server.Count(upstream.Fetch), err)
			}
			for commit, want := range map[string][]string{h.side: nil, h.old: {h.old}, onto: {h.old}, merged: {h.old, h.tip}} {
				bases, err := client.StandsOn(t.Context(), remote, tip, git.Want{Hash: commit})
				slices.Sort(bases)
				slices.Sort(want)
				if diff := cmp.Diff(want, bases); diff != "" || err != nil {
					t.Error(commit, diff, err)
				}
			}
			absent := strings.Repeat("ab", 20)
			for _, lacking := range [][2]string{{absent, h.old}, {h.tip, absent}} {
				_, err := client.Beside(t.Context(), remote, git.Want{Hash: lacking[0], Ref: "refs/heads/main"}, []git.Want{{Hash: lacking[1]}})
				if !errors.Is(err, git.ErrRefNotFound) {
					t.Errorf("what is missing gives %v", err)
				}
			}
		})
	}
}

func TestComparisonsAreBounded(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	main := repository.Commit("main", "main", upstream.Text(map[string]string{"a": "a"}))
	side := repository.Rewrite("side", "side", upstream.Text(map[string]string{"large": noise(1 << 20)}))
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client := newClient(t, func(o *git.Options) { o.MaxPackBytes = 1 << 16 })
	if _, err := client.Beside(t.Context(), remote, git.Want{Hash: main, Ref: "refs/heads/main"}, []git.Want{{Hash: side}}); !errors.Is(err, git.ErrLimit) {
		t.Errorf("without a filter: %v", err)
	}
	repository.Raw("config", "uploadpack.allowFilter", "true")
	client = newClient(t, func(o *git.Options) { o.MaxPackBytes = 1 << 16 })
	if found, err := client.Beside(t.Context(), remote, git.Want{Hash: main, Ref: "refs/heads/main"}, []git.Want{{Hash: side}}); !found[side] || err != nil {
		t.Errorf("with a filter: %v, %v", found, err)
	}
}
