package git_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// servers are the kinds of servers that there are, by their configuration.
func servers() map[string]struct {
	settings  []string
	withoutV2 bool
} {
	type server = struct {
		settings  []string
		withoutV2 bool
	}
	filter := "uploadpack.allowFilter=true"
	return map[string]server{
		"commits alone":           {[]string{filter}, false},
		"no filter":               {nil, false},
		"a filter that is banned": {[]string{filter, "uploadpackfilter.tree.allow=false"}, false},
		"version 0":               {nil, true},
		"version 0 with filter":   {[]string{filter}, true},
	}
}

func TestMembershipIsProven(t *testing.T) {
	t.Parallel()
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			for _, setting := range server.settings {
				key, value, _ := strings.Cut(setting, "=")
				h.repository.Raw("config", key, value)
			}
			merged := h.repository.Raw("commit-tree", h.tip+"^{tree}", "-p", h.tip, "-p", h.side, "-m", "merge")
			h.repository.SetRef("refs/heads/merged", merged)
			cases := map[string]struct {
				reason      string
				ref, commit string
				want        error
			}{
				"tip":      {"The tip is on its branch.", "refs/heads/main", h.tip, nil},
				"parent":   {"So is what it was made on.", "refs/heads/main", h.old, nil},
				"merged":   {"And what was merged.", "refs/heads/merged", h.side, nil},
				"through":  {"And what is behind it.", "refs/heads/merged", h.old, nil},
				"tag":      {"The tag's commit is on the tag.", "refs/tags/v1.0.0", h.tagged, nil},
				"other":    {"Another branch's is not.", "refs/heads/main", h.side, git.ErrRefNotFound},
				"child":    {"Nor is what was made of it.", "refs/heads/main", merged, git.ErrRefNotFound},
				"lost":     {"Nor what no ref reaches.", "refs/heads/main", h.lost, git.ErrRefNotFound},
				"absent":   {"Nor what is nowhere.", "refs/heads/main", strings.Repeat("ab", 20), git.ErrRefNotFound},
				"old main": {"Nor, on a tag, a branch's.", "refs/tags/v1.0.0", h.old, git.ErrRefNotFound},
			}
			client := newClient(t)
			remote := git.Remote{URL: h.HTTP(upstream.HTTPOptions{WithoutV2: server.withoutV2}).URL("app")}
			for name, c := range cases {
				tip := git.Want{Hash: h.repository.Raw("rev-parse", c.ref+"^{commit}"), Ref: c.ref}
				err := client.Reaches(t.Context(), remote, tip, c.commit)
				if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.ref) || !strings.Contains(err.Error(), c.commit)) {
					t.Errorf("%s: %s want %v, got %v", name, c.reason, c.want, err)
				}
			}
		})
	}
}

func TestMembershipIsProvenOverSSH(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.repository.Raw("config", "uploadpack.allowFilter", "true")
	server, as := serveSSH(t, h.Fixture, upstream.SSHOptions{})
	remote := over(server.URL("app"), as)
	tip := git.Want{Hash: h.tip, Ref: "refs/heads/main"}
	if err := newClient(t).Reaches(t.Context(), remote, tip, h.old); err != nil {
		t.Error(err)
	}
	if err := newClient(t).Reaches(t.Context(), remote, tip, h.side); !errors.Is(err, git.ErrRefNotFound) {
		t.Errorf("got %v", err)
	}
}

// long makes a branch of so many commits, and returns the first and the last.
func long(t *testing.T, repository *upstream.Edited, branch string, commits int) (first, last string) {
	t.Helper()
	var stream strings.Builder
	for i := range commits {
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter A <a@x> %d +0000\ndata 1\nx\n", branch, 1700000000+i)
		if i == 0 {
			stream.WriteString("M 100644 inline f\ndata 1\nx\n")
		}
	}
	if _, err := repository.RawInput([]byte(stream.String()), "fast-import", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return repository.Raw("rev-list", "--max-parents=0", "refs/heads/"+branch), repository.Raw("rev-parse", "refs/heads/"+branch)
}

func TestLongHistoriesAreWalkedInSteps(t *testing.T) {
	t.Parallel()
	const commits = 5_000
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	repository.Raw("config", "uploadpack.allowFilter", "true")
	first, last := long(t, repository, "main", commits)
	near := repository.Raw("rev-parse", "main~20")
	repository.Commit("side", "side", upstream.Text(map[string]string{"large": noise(1 << 20)}))
	server := f.HTTP(upstream.HTTPOptions{})
	remote, tip := git.Remote{URL: server.URL("app")}, git.Want{Hash: last, Ref: "refs/heads/main"}

	var received int64
	client := newClient(t, func(o *git.Options) { o.Observe = func(bytes int64) { received = bytes } })
	if err := client.Reaches(t.Context(), remote, tip, near); err != nil || received > 20_000 {
		t.Errorf("a commit near the tip took %d bytes: %v", received, err)
	}
	server.Reset()
	if err := client.Reaches(t.Context(), remote, tip, first); err != nil {
		t.Error(err)
	}
	// 256 + 512 + … + 2048 commits, then the rest, after one look whether the commit is there.
	if fetches := server.Count(upstream.Fetch); fetches < 5 || fetches > 7 {
		t.Errorf("%d fetches", fetches)
	}
	for name, limit := range map[string]func(*git.Options){
		"--git-max-objects":    func(o *git.Options) { o.MaxObjects = commits / 4 },
		"--git-max-pack-bytes": func(o *git.Options) { o.MaxPackBytes = received / 4 },
	} {
		err := newClient(t, limit).Reaches(t.Context(), remote, tip, first)
		if !errors.Is(err, git.ErrLimit) || !strings.Contains(err.Error(), "cannot tell") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
