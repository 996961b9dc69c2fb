package git_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestACrowdSharesACache that has room for some of the repositories alone, so that it evicts and compacts all the time.
func TestACrowdSharesACache(t *testing.T) {
	t.Parallel()
	const repositories, commits, workers, fetches, room = 6, 6, 8, 25, 1 << 20
	f := upstream.ForTest(t)
	server := f.HTTP(upstream.HTTPOptions{})
	var hashes [repositories][]string
	want := map[string]upstream.Files{}
	for i := range hashes {
		repository := f.Repository(fmt.Sprint(i))
		hashes[i] = noisy(repository, commits, 60_000+i)
		for _, hash := range hashes[i] {
			want[hash] = expected(repository.Tree(hash))
		}
	}
	seen, dir := &hows{}, t.TempDir()
	client := newClient(t, keeping(dir, seen), func(o *git.Options) { o.MaxCacheBytes = room })
	var crowd sync.WaitGroup
	for worker := range workers {
		crowd.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for n := range fetches {
				i := random.IntN(repositories)
				hash := hashes[i][min(commits-1, n*commits/fetches+random.IntN(2))]
				remote := git.Remote{URL: server.URL(fmt.Sprint(i))}
				commit, err := client.Fetch(t.Context(), remote, git.Want{Hash: hash, Ref: "refs/heads/main"})
				if err != nil {
					t.Errorf("repository %d: %v", i, err)
					continue
				}
				if diff := cmp.Diff(want[hash], files(t, commit.Tree())); diff != "" {
					t.Errorf("repository %d, %s: another tree", i, hash)
				}
				archive := digest.FromString(hash)
				commit.Parts().Save(archive, []byte(hash))
				if index := commit.Parts().Load(archive); !strings.HasPrefix(hash, string(index)) { // Others may be writing it.
					t.Errorf("the parts of %s are %q", hash, index)
				}
				if err := commit.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	crowd.Wait()
	count := map[git.How]int{}
	for _, how := range seen.take() {
		count[how]++
	}
	t.Log("commits were had by", count)
	if count[git.Whole] <= repositories || count[git.Incremental] == 0 || count[git.FromCache] == 0 {
		t.Errorf("commits were had by %v", count)
	}
	if got := diskUsage(t, dir); got > room {
		t.Errorf("%d bytes are kept", got)
	}
}

// TestWhoWaitsForAnotherFetchCanLeave: a server that says nothing holds those alone who ask it, until their time is over.
func TestWhoWaitsForAnotherFetchCanLeave(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	server := h.HTTP(upstream.HTTPOptions{})
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	remote := git.Remote{URL: server.URL("app")}
	fetch(t, client, remote, git.Want{Hash: h.old})
	ticks := make(chan time.Time)
	server.Always(upstream.Slow(1, ticks).On(upstream.Fetch))
	first, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := client.Fetch(first, remote, git.Want{Hash: h.tip}); !errors.Is(err, context.Canceled) {
			t.Errorf("who was cancelled: %v", err)
		}
	})
	ticks <- time.Time{} // The server answers the first one.
	second, leave := context.WithCancelCause(t.Context())
	impatient := errors.New("impatient")
	time.AfterFunc(10*time.Millisecond, func() { leave(impatient) })
	if _, err := client.Fetch(second, remote, git.Want{Hash: h.tip}); !errors.Is(err, impatient) {
		t.Errorf("who waits: %v", err)
	}
	server.Heal()
	stop()
	waiting.Wait()
	fetch(t, client, remote, git.Want{Hash: h.tip})
}
