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

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

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

// TestWhatCommitsSayIsDrawn: some say much, or name thousands of parents that nobody needs.
func TestWhatCommitsSayIsDrawn(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	tree := repository.RawTree()
	var parents strings.Builder
	for range 4000 {
		fmt.Fprintf(&parents, "parent %s\n", strings.Repeat("12", 20))
	}
	commit := func(i int, parents, message string) git.Want {
		text := fmt.Sprintf("tree %s\n%sauthor A <a@x> %d +0000\ncommitter A <a@x> %d +0000\n\n%s\n", tree, parents, i, i, message)
		return git.Want{Hash: repository.Object("commit", []byte(text))}
	}
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	for name, c := range map[string]struct {
		parents, message string
		want             error
	}{
		"little":  {"", "m", nil},
		"much":    {"", strings.Repeat("much ", 40_000), memory.ErrBudget},
		"parents": {parents.String(), "m", memory.ErrBudget},
	} {
		var wants []git.Want
		for i := range 40 {
			wants = append(wants, commit(i, c.parents, c.message))
		}
		client := newClient(t)
		err := memory.New(2<<20, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			commits, err := client.FetchAll(ctx, remote, wants)
			return errors.Join(err, git.CloseAll(commits))
		})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
