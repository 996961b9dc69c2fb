package git_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

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

// TestManySurviveARestart: another process is not to fetch them again.
func TestManySurviveARestart(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 30, 2, 10)
	server := f.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	dir := t.TempDir()
	client := newClient(t, keeping(dir, &hows{}))
	wants := s.wants(client, remote, "refs/heads/drafts/", "refs/tags/")
	fetchAll(t, client, remote, wants)
	client = newClient(t, keeping(copied(t, dir), &hows{}))
	s.checkAll(fetchAll(t, client, remote, wants), wants)
	if asked := server.Count(upstream.Fetch); asked != 1 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// TestManyThatOutgrowTheirShareAreCompacted: what drafts were before does not keep new ones out of the cache.
func TestManyThatOutgrowTheirShareAreCompacted(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.MaxCacheBytes = 2 << 20 })
	const drafts, rounds = 5, 12
	content := noise(drafts * rounds * 20_000)
	wants := make([]git.Want, drafts)
	for round := range rounds {
		for i := range wants {
			text := content[(round*drafts+i)*20_000:][:20_000]
			branch := fmt.Sprint("draft", i)
			wants[i] = git.Want{Hash: repository.Commit(branch, "m", upstream.Text(map[string]string{"noise": text})), Ref: "refs/heads/" + branch}
		}
		for range 2 {
			for i, commit := range fetchAll(t, client, remote, wants) {
				if got, err := commit.ReadFile("noise", 1<<20); string(got) != content[(round*drafts+i)*20_000:][:20_000] {
					t.Errorf("round %d: draft %d has %d bytes, %v", round, i, len(got), err)
				}
			}
		}
		if got := diskUsage(t, dir); got > 1<<19 {
			t.Errorf("round %d: %d bytes", round, got)
		}
		for i, how := range seen.take() {
			if i >= drafts && how != git.FromCache || i < drafts && round > 0 && how != git.Incremental {
				t.Errorf("round %d: commit %d was had by %s", round, i, how)
			}
		}
	}
}

// TestDamagedCommitsAreNotGivenOut: what is read of many is right, or it is an error, and is fetched anew the next time.
func TestDamagedCommitsAreNotGivenOut(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	s := newShelf(t, f, 10, 2, 5)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	dir := t.TempDir()
	first := newClient(t, keeping(dir, &hows{}))
	wants := s.wants(first, remote, "refs/heads/drafts/", "refs/tags/")
	read := func(client *git.Client) (found map[string]string, err error) {
		commits, err := client.FetchAll(t.Context(), remote, wants)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, git.CloseAll(commits)) }()
		found = map[string]string{}
		for i, commit := range commits {
			path := packageAt(wants[i].Ref)
			tree, err := commit.TreeID(path)
			if err != nil {
				return nil, err
			}
			content, err := commit.ReadFile(path+"/Kptfile", 1<<10)
			if err != nil {
				return nil, err
			}
			found[wants[i].Ref] = fmt.Sprint(commit.Subject, commit.Parents, commit.CommitterTime, tree, string(content))
		}
		return found, nil
	}
	right, err := read(first)
	if err != nil {
		t.Fatal(err)
	}
	random, failed := rand.New(rand.NewPCG(2, 2)), 0
	for round := range 60 {
		damaged := copied(t, dir)
		data := file(t, damaged, "data-*")
		content, err := os.ReadFile(data)
		if err != nil {
			t.Fatal(err)
		}
		at := random.IntN(len(content))
		content[at] ^= 1 << random.IntN(8)
		if err := os.WriteFile(data, content, 0o600); err != nil {
			t.Fatal(err)
		}
		client := newClient(t, keeping(damaged, &hows{}))
		for try := range 3 {
			found, err := read(client)
			if err != nil {
				failed++
			}
			if diff := cmp.Diff(right, found); err == nil && diff != "" {
				t.Errorf("round %d, byte %d: other commits (-want +got):\n%s", round, at, diff)
			}
			if err != nil && try > 0 {
				t.Errorf("round %d: again: %v", round, err)
			}
		}
	}
	if failed == 0 {
		t.Error("nothing was damaged")
	}
}
