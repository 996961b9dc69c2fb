package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
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

// TestLimitsHoldForAllTogether, and those of a tree for each.
func TestLimitsHoldForAllTogether(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 3, 1, 0)
	for i := range 10 {
		s.Commit(fmt.Sprint("large", i), "m", upstream.Text(map[string]string{"noise": noise(200_000)[i*20_000:][:20_000]}))
	}
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	for name, change := range map[string]func(*git.Options){
		"bytes of a pack": func(o *git.Options) { o.MaxPackBytes = 100_000 },
		"objects":         func(o *git.Options) { o.MaxObjects = 25 },
		"unpacked bytes":  func(o *git.Options) { o.MaxUnpackedBytes = 100_000 },
	} {
		seen := &hows{}
		client := newClient(t, keeping(t.TempDir(), seen), change)
		wants := s.wants(client, remote, "refs/heads/large")
		fetchAll(t, client, remote, wants[:2])
		for range 2 {
			if _, err := client.FetchAll(t.Context(), remote, wants); !errors.Is(err, git.ErrLimit) {
				t.Errorf("%s: want %v, got %v", name, git.ErrLimit, err)
			}
		}
		seen.take()
		fetchAll(t, client, remote, wants[:2])
		if got := seen.take(); !slices.Equal(got, []git.How{git.FromCache, git.FromCache}) {
			t.Errorf("%s: what was in the cache was had by %v", name, got)
		}
	}
	client := newClient(t, func(o *git.Options) { o.MaxFiles = 8 })
	commit := fetchAll(t, client, remote, s.wants(client, remote))[0]
	if _, err := fs.ReadDir(commit.Tree(), "."); !errors.Is(err, git.ErrLimit) {
		t.Errorf("a tree of too many files: %v", err)
	}
	if _, err := commit.Folder("pkgs"); !errors.Is(err, git.ErrLimit) {
		t.Errorf("a folder of too many files: %v", err)
	}
	for range 20 {
		if folder, err := commit.Folder(packagePath(0)); err != nil || len(files(t, folder)) != 3 {
			t.Errorf("a folder of few files: %v", err)
		}
	}
}

// TestMemoryOfManyCommitsIsDrawn, and given back with the last of them.
func TestMemoryOfManyCommitsIsDrawn(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 100, 5, 0)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	wants := s.wants(client, remote, "refs/tags/")
	list := func(ctx context.Context) error {
		commits, err := client.FetchAll(ctx, remote, wants)
		if err != nil {
			return err
		}
		for i, commit := range commits {
			if _, err := commit.ReadFile(packageAt(wants[i].Ref)+"/Kptfile", 1<<10); err != nil {
				return errors.Join(err, git.CloseAll(commits))
			}
			if err := commit.Close(); err != nil {
				return err
			}
		}
		return nil
	}
	for total, want := range map[int64]error{64 << 10: memory.ErrBudget, 8 << 20: nil} {
		err := memory.New(total, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			for range 30 {
				if err := list(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, want) {
			t.Errorf("with %d bytes: %v, want %v", total, err, want)
		}
	}
}

// TestEachOfManyCommitsIsClosedByItself: the others can be read on, and it cannot.
func TestEachOfManyCommitsIsClosedByItself(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 5, 1, 5)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	for _, client := range []*git.Client{newClient(t), newClient(t, keeping(t.TempDir(), &hows{}))} {
		wants := s.wants(client, remote, "refs/heads/drafts/")
		commits := fetchAll(t, client, remote, wants)
		for i, commit := range commits {
			path := packageAt(wants[i].Ref)
			open, err := commit.Tree().Open(path + "/service.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(commit.Close(), commit.Close()); err != nil {
				t.Error(err)
			}
			if _, err := open.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("a file that is open: %v", err)
			}
			if _, err := commit.ReadFile(path+"/Kptfile", 1<<10); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("a file: %v", err)
			}
			if _, err := commit.TreeID("pkgs"); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("a folder: %v", err)
			}
			if err := commit.Find("Kptfile", func(git.Found) error { return nil }); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("all folders: %v", err)
			}
			if err := open.Close(); err != nil {
				t.Error(err)
			}
			if i+1 < len(commits) {
				s.checkAll(commits[i+1:], wants[i+1:])
			}
		}
	}
}

// TestManyReadManyCommits at once, while others fetch.
func TestManyReadManyCommits(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 20, 2, 10)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	wants := s.wants(client, remote, "refs/heads/drafts/", "refs/tags/")
	commits := fetchAll(t, client, remote, wants)
	var readers sync.WaitGroup
	for n := range 6 {
		readers.Go(func() {
			for i := n; i < len(commits); i += 3 {
				count := 0
				err := commits[i].Find("Kptfile", func(git.Found) error { count++; return nil })
				folder, ferr := commits[i].Folder(packageAt(wants[i].Ref))
				if err := errors.Join(err, ferr); err != nil || count == 0 || len(files(t, folder)) != 3 || len(files(t, commits[i].Tree())) != 3*count {
					t.Errorf("%s: %d packages, %v", wants[i].Ref, count, err)
				}
			}
		})
		readers.Go(func() {
			others := append(slices.Clone(wants[:1]), wants[1+n:]...)
			more, err := client.FetchAll(t.Context(), remote, others)
			if err := errors.Join(err, git.CloseAll(more)); err != nil {
				t.Error(err)
			}
		})
	}
	readers.Wait()
}

// TestWhoFetchesOthersCostsNobodyTheCache: not whoever fetches other commits together, nor whoever fetches one by one.
func TestWhoFetchesOthersCostsNobodyTheCache(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 40, 1, 30)
	server := f.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	drafts, tags := s.wants(client, remote, "refs/heads/drafts/"), s.wants(client, remote, "refs/tags/")
	fetchAll(t, client, remote, drafts)
	fetchAll(t, client, remote, tags)
	for i := range 20 {
		hash := s.Commit("other", "m", upstream.Text(map[string]string{"other": fmt.Sprint(i)}))
		fetch(t, client, remote, git.Want{Hash: hash, Ref: "refs/heads/other"})
	}
	before := server.Count(upstream.Fetch)
	for range 2 {
		s.checkAll(fetchAll(t, client, remote, drafts), drafts)
		s.checkAll(fetchAll(t, client, remote, tags), tags)
		fetch(t, client, remote, drafts[5])
	}
	if asked := server.Count(upstream.Fetch) - before; asked > 0 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// TestManyAreRightWithoutTheirCache: it may go at any time, be too small for them, or be gone for good.
func TestManyAreRightWithoutTheirCache(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 60, 2, 20)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen))
	wants := s.wants(client, remote, "refs/heads/drafts/", "refs/tags/")
	for range 3 {
		commits := fetchAll(t, client, remote, wants)
		found, err := os.ReadDir(dir)
		for _, entry := range found {
			if entry.IsDir() {
				err = errors.Join(err, os.RemoveAll(dir+"/"+entry.Name()))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		s.checkAll(commits, wants)
		if got := seen.take(); slices.ContainsFunc(got, func(how git.How) bool { return how != git.Whole }) {
			t.Errorf("with an empty cache they were had by %v", got)
		}
	}
	small, dir := &hows{}, t.TempDir()
	client = newClient(t, keeping(dir, small), func(o *git.Options) { o.MaxCacheBytes = 40_000 })
	for range 2 {
		s.checkAll(fetchAll(t, client, remote, wants), wants)
		if got := diskUsage(t, dir); got > 40_000 {
			t.Errorf("%d bytes are kept", got)
		}
		s.checkAll(fetchAll(t, client, remote, wants[:4]), wants[:4])
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
