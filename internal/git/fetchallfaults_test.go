package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// lose deletes refs, and what only they led to.
func (s shelf) lose(refs ...string) {
	s.t.Helper()
	for _, ref := range refs {
		s.DeleteRef(ref)
	}
	s.Raw("repack", "-a", "-d", "-q")
	s.Raw("prune", "--expire=now")
}

// TestADeletedDraftHarmsNoOther, however it went away between the list of refs and the fetch.
func TestADeletedDraftHarmsNoOther(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"http", "ssh"} {
		for _, version2 := range []bool{true, false} {
			for _, cached := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s v2=%t cached=%t", over, version2, cached), func(t *testing.T) {
					t.Parallel()
					f := upstream.ForTest(t)
					s := newShelf(t, f, 12, 1, 10)
					var options []func(*git.Options)
					if cached {
						options = append(options, keeping(t.TempDir(), &hows{}))
					}
					client := newClient(t, options...)
					var gone []string
					for i := range 5 {
						gone = append(gone, fmt.Sprintf("refs/heads/drafts/%s/next", packagePath(2*i)))
					}
					lose := sync.OnceFunc(func() { s.lose(gone...) })
					var remote git.Remote
					if over == "ssh" {
						server, as := serveSSH(t, f, upstream.SSHOptions{WithoutV2: !version2})
						remote = git.Remote{URL: server.URL("app")}
						remote.Credential.SSH = &as
					} else {
						server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
						remote.URL = server.URL("app")
						if cached {
							fetchAll(t, client, remote, s.wants(client, remote, "refs/heads/drafts/")[:3])
						}
						server.Before(upstream.Fetch, lose)
						before := server.Count(upstream.Fetch)
						defer func() {
							if asked := server.Count(upstream.Fetch) - before; asked > 2 {
								t.Errorf("the server was asked for packs %d times", asked)
							}
						}()
					}
					wants := s.wants(client, remote, "refs/heads/drafts/")
					if over == "ssh" {
						if cached {
							fetchAll(t, client, remote, wants[:3])
						}
						lose()
					}
					commits := fetchAll(t, client, remote, wants)
					for i, commit := range commits {
						isGone := slices.Contains(gone, wants[i].Ref) && (!cached || i > 2)
						if isGone != (commit == nil) {
							t.Errorf("%s: %v", wants[i].Ref, commit)
						}
					}
				})
			}
		}
	}
}

// TestWhatNeverWasIsNotThere, and what was wanted with it is.
func TestWhatNeverWasIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	wants := []git.Want{
		{Hash: h.tip, Ref: "refs/heads/main"},
		{Hash: strings.Repeat("ab", 20)},
		{Hash: "main"},
		{Hash: h.tagged, Ref: "refs/tags/v1.0.0", Tag: h.annotation},
		{},
		{Hash: strings.ToUpper(h.old)},
		{Hash: h.tip},
		{Hash: strings.Repeat("cd", 20), Ref: "refs/heads/none"},
		{Hash: h.pull, Ref: "refs/pull/1/head"},
	}
	there := []bool{true, false, false, true, false, true, true, false, true}
	for _, version2 := range []bool{true, false} {
		for _, keep := range []bool{true, false} {
			client := newClient(t)
			if keep {
				client = newClient(t, keeping(t.TempDir(), &hows{}))
			}
			remote := git.Remote{URL: h.HTTP(upstream.HTTPOptions{WithoutV2: !version2}).URL("app")}
			for range 2 {
				for i, commit := range fetchAll(t, client, remote, wants) {
					// Without version 2 all history is fetched for the sake of a commit that no ref names, and a pull request is in none.
					if isThere := there[i] && (version2 || i != 8); isThere != (commit != nil) {
						t.Errorf("v2=%t: %s is %v", version2, wants[i].Hash, commit)
					} else if isThere {
						if _, err := fs.ReadFile(commit.Tree(), "file"); err != nil || commit.Hash != strings.ToLower(wants[i].Hash) {
							t.Errorf("v2=%t: %s: %v", version2, commit.Hash, err)
						}
					}
				}
			}
			if commits, err := client.FetchAll(t.Context(), remote, nil); len(commits) > 0 || err != nil {
				t.Errorf("of nothing: %v, %v", commits, err)
			}
		}
	}
	if _, err := newClient(t).FetchAll(t.Context(), git.Remote{URL: "ftp://x/y"}, wants); !errors.Is(err, git.ErrURL) {
		t.Errorf("want %v, got %v", git.ErrURL, err)
	}
}

// TestWhoGivesUpLeavesNothing, and the next one gets all.
func TestWhoGivesUpLeavesNothing(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 60, 2, 0)
	server := f.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	wants := s.wants(client, remote, "refs/tags/")
	for _, fault := range []upstream.Fault{upstream.HangAfter(0), upstream.HangAfter(3000), upstream.Hang().On(upstream.Fetch)} {
		server.Always(fault)
		ctx, cancel := context.WithCancel(t.Context())
		before := server.Count(upstream.Fetch)
		var fetching sync.WaitGroup
		fetching.Go(func() {
			if _, err := client.FetchAll(ctx, remote, wants); !errors.Is(err, context.Canceled) {
				t.Errorf("want %v, got %v", context.Canceled, err)
			}
		})
		for server.Count(upstream.Fetch) == before {
			select {
			case <-t.Context().Done():
				t.Fatal("the server is not asked")
			default:
			}
		}
		cancel()
		fetching.Wait()
		server.Heal()
	}
	for _, fault := range []upstream.Fault{upstream.CutAfter(3000), upstream.Flip(3000), upstream.Status(500).On(upstream.Fetch)} {
		server.Always(fault)
		if commits, err := client.FetchAll(t.Context(), remote, wants); err == nil {
			t.Errorf("%d commits", len(commits))
		}
		server.Heal()
	}
	s.checkAll(fetchAll(t, client, remote, wants), wants)
}
