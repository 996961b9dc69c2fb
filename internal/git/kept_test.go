package git_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestACommitThatIsNotThereCostsTheCacheNothing: whoever asks for it would else make others fetch all anew.
func TestACommitThatIsNotThereCostsTheCacheNothing(t *testing.T) {
	t.Parallel()
	for _, version2 := range []bool{true, false} {
		h := newHistory(t)
		seen := &hows{}
		client := newClient(t, keeping(t.TempDir(), seen))
		remote := git.Remote{URL: h.HTTP(upstream.HTTPOptions{WithoutV2: !version2}).URL("app")}
		fetch(t, client, remote, git.Want{Hash: h.old, Branch: "main"})
		for range 5 {
			if _, err := client.Fetch(t.Context(), remote, git.Want{Hash: strings.Repeat("12", 20)}); !errors.Is(err, git.ErrRefNotFound) {
				t.Errorf("v2=%t: want %v, got %v", version2, git.ErrRefNotFound, err)
			}
		}
		seen.take()
		fetch(t, client, remote, git.Want{Hash: h.tip, Ref: "refs/heads/main"})
		if got := seen.take(); !slices.Equal(got, []git.How{git.Incremental}) {
			t.Errorf("v2=%t: the next commit was had by %v", version2, got)
		}
	}
}

// TestALargeFileMayChange: a server sends it as a delta to who has it, and it is too large for that.
func TestALargeFileMayChange(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen := &hows{}
	client := newClient(t, keeping(t.TempDir(), seen), func(o *git.Options) { o.MaxObjectBytes = 1 << 20 })
	for i := range 8 {
		changed := upstream.Text(map[string]string{"small": fmt.Sprint(i)})
		if i%2 == 0 {
			changed = upstream.Text(map[string]string{"large": noise(500_000) + fmt.Sprint(i)})
		}
		hash := repository.Commit("main", "m", changed)
		commit, err := client.Fetch(t.Context(), remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
		if err != nil {
			t.Errorf("commit %d: %v", i, err)
			continue
		}
		if got := read(t, commit.Tree(), "large"); got != noise(500_000)+fmt.Sprint(i/2*2) {
			t.Errorf("commit %d: %d bytes", i, len(got))
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
	}
	got := seen.take()
	for i, how := range got {
		if i%2 == 1 && how != git.Incremental {
			t.Errorf("commits were had by %v", got)
		}
	}
}

// TestACommitThatTheServerGivesNobodyAnyMore is not given out of the cache to who cannot tell where it is.
func TestACommitThatTheServerGivesNobodyAnyMore(t *testing.T) {
	t.Parallel()
	for _, version2 := range []bool{true, false} {
		h := newHistory(t)
		seen := &hows{}
		client := newClient(t, keeping(t.TempDir(), seen))
		remote := git.Remote{URL: h.HTTP(upstream.HTTPOptions{WithoutV2: !version2}).URL("app")}
		fetch(t, client, remote, git.Want{Hash: h.tip})
		fetch(t, client, remote, git.Want{Hash: h.tip})
		h.repository.Rewrite("main", "cleaned", upstream.Text(map[string]string{"file": "clean"}))
		h.repository.Raw("reflog", "expire", "--expire=now", "--all")
		h.repository.Raw("gc", "--prune=now")
		if _, err := client.Fetch(t.Context(), remote, git.Want{Hash: h.tip}); !errors.Is(err, git.ErrRefNotFound) {
			t.Errorf("v2=%t: want %v, got %v", version2, git.ErrRefNotFound, err)
		}
	}
}

// TestARepositoryThatOutgrowsItsShareIsCompacted: what nobody needs does not keep new commits out of the cache.
func TestARepositoryThatOutgrowsItsShareIsCompacted(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.MaxCacheBytes = 2 << 20 })
	for i, hash := range noisy(repository, 12, 60_000) {
		fetch(t, client, remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
		fetch(t, client, remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
		if got := seen.take(); len(got) != 2 || got[1] != git.FromCache || got[0] != git.Incremental && i > 0 {
			t.Errorf("commit %d was had by %v", i, got)
		}
		if got := diskUsage(t, dir); got > 1<<20 {
			t.Errorf("commit %d: %d bytes", i, got)
		}
	}
}

// TestARepositoryThatIsTooLargeIsNotKept: it may become that with a new commit.
func TestARepositoryThatIsTooLargeIsNotKept(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.MaxCacheBytes = 2 << 20 })
	for i := range 4 {
		hash := repository.Commit("main", "m", upstream.Text(map[string]string{fmt.Sprint(i): noise(1_200_000)[i*300_000:][:300_000]}))
		fetch(t, client, remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
		if got := diskUsage(t, dir); got > 1<<19 {
			t.Errorf("commit %d: %d bytes", i, got)
		}
	}
	if got, want := seen.take(), []git.How{git.Whole, git.Incremental, git.Whole, git.Whole}; !slices.Equal(got, want) {
		t.Errorf("commits were had by %v, want %v", got, want)
	}
}

// TestWhatIsTooLargeCostsTheOthersNothing: of what is in the cache nothing is wrong.
func TestWhatIsTooLargeCostsTheOthersNothing(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	seen := &hows{}
	client := newClient(t, keeping(t.TempDir(), seen), func(o *git.Options) { o.MaxObjectBytes = 1 << 20 })
	first := repository.Commit("main", "m", upstream.Text(map[string]string{"large": noise(500_000), "small": "0"}))
	fetch(t, client, remote, git.Want{Hash: first, Ref: "refs/heads/main"})
	repository.SetRef("refs/heads/broken", first)
	for i := range 4 {
		broken := repository.Commit("broken", "m", upstream.Text(map[string]string{"larger": strings.Repeat(fmt.Sprint(i), 2<<20)}))
		if _, err := client.Fetch(t.Context(), remote, git.Want{Hash: broken, Ref: "refs/heads/broken"}); !errors.Is(err, git.ErrLimit) {
			t.Errorf("want %v, got %v", git.ErrLimit, err)
		}
		fetch(t, client, remote, git.Want{Hash: first, Ref: "refs/heads/main"})
	}
	// This one is a delta that is too large, and has to be fetched as a whole.
	for i := range 4 {
		changed := repository.Commit("main", "m", upstream.Text(map[string]string{"large": noise(500_000) + fmt.Sprint(i)}))
		fetch(t, client, remote, git.Want{Hash: changed, Ref: "refs/heads/main"})
	}
	last := repository.Commit("main", "m", upstream.Text(map[string]string{"small": "1"}))
	fetch(t, client, remote, git.Want{Hash: last, Ref: "refs/heads/main"})
	want := []git.How{git.Whole, git.FromCache, git.FromCache, git.FromCache, git.FromCache, git.Whole, git.Whole, git.Whole, git.Whole, git.Incremental}
	if diff := cmp.Diff(want, seen.take()); diff != "" {
		t.Errorf("had by (-want +got):\n%s", diff)
	}
}
