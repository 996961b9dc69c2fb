package git_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// childMode says what the test binary is: one that fetches until it is killed, or that runs its tests bound by the modes of
// files.
const childMode = "SLUICE_GIT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "fetch" {
		os.Exit(m.Run())
	}
	if err := fetchUntilKilled(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rounds are how often a process is killed, and how often of these with nothing in the cache. With SLUICE_TORTURE it is
// killed more often.
func rounds() (all, cold int) {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return 100, 20
	}
	return 5, 1
}

// noisy makes commits that each change a file which does not compress.
func noisy(r *upstream.Edited, n, size int) (hashes []string) {
	random := rand.NewChaCha8([32]byte{})
	large := make([]byte, size)
	for i := range n {
		_, _ = random.Read(large) // It never fails.
		hashes = append(hashes, r.Commit("main", "m", upstream.Text(map[string]string{
			"large": string(large), "dir/small": fmt.Sprint("commit ", i, "\n"),
		})))
	}
	return hashes
}

// TestAKilledFetchLeavesACacheThatIsRight kills a process that fetches at a change of the cache's files: while it writes a
// pack there, while it adds one to what is there, between data and index, and while it compacts.
func TestAKilledFetchLeavesACacheThatIsRight(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	server := f.HTTP(upstream.HTTPOptions{})
	large, app := killed{f.Repository("large"), server.URL("large"), nil}, killed{f.Repository("app"), server.URL("app"), nil}
	large.hashes, app.hashes = noisy(large.repository, 1, 10<<20), noisy(app.repository, 6, 1_500_000)
	warm := t.TempDir()
	killAfter(t, warm, app.url, app.hashes[:4], 1<<20) // The next one is compacted.
	seen := &hows{}
	all, cold := rounds()
	for round := range all {
		random := rand.New(rand.NewPCG(uint64(round), 7))
		dir, killed := copied(t, warm), app
		if round < cold {
			killed = large
		}
		changes := 1 + random.IntN(80)
		known := killAfter(t, dir, killed.url, killed.hashes[min(4, len(killed.hashes)-1):], changes)
		client := newClient(t, keeping(dir, seen))
		for _, hash := range []string{known, killed.hashes[len(killed.hashes)-1]} {
			if hash == "" {
				continue
			}
			commit := fetch(t, client, git.Remote{URL: killed.url}, git.Want{Hash: hash, Ref: "refs/heads/main"})
			if diff := cmp.Diff(expected(killed.repository.Tree(hash)), files(t, commit.Tree())); diff != "" {
				t.Fatalf("round %d: tree of %s (-git +ours): %d bytes", round, hash, len(diff))
			}
		}
	}
	count := map[git.How]int{}
	for _, how := range seen.take() {
		count[how]++
	}
	t.Log("commits were had by", count)
	if count[git.Whole] > cold {
		t.Errorf("what was there before was lost: %v", count)
	}
}

// killed is what a child fetches.
type killed struct {
	repository *upstream.Edited
	url        string
	hashes     []string
}

// killAfter runs a child that fetches the commits into the folder, kills it at the given change of a file in there, and
// returns the commit that it had last.
func killAfter(t *testing.T, dir, url string, hashes []string, changes int) (known string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), childMode+"=fetch", "DIR="+dir, "TMPDIR="+t.TempDir(), "URL="+url, "HASHES="+strings.Join(hashes, " "))
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	changed := watchFolder(t, dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for range changes {
			if _, ok := <-changed; !ok {
				return
			}
		}
		_ = command.Process.Kill() // It may have ended by itself.
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		known = lines.Text()
	}
	err = command.Wait()
	if err != nil && err.Error() != "signal: killed" {
		t.Fatalf("the child was not killed but ended with %v", err)
	}
	stopWatching(t, dir)
	watching.Wait()
	return known
}

const stopFile = "stop"

// watchFolder gives an event for each change of a file in the folder and those in it, until stopWatching.
func watchFolder(t *testing.T, dir string) <-chan struct{} {
	t.Helper()
	inotify, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_MOVED_TO | unix.IN_DELETE
	watch := func(path string) {
		if _, err := unix.InotifyAddWatch(inotify, path, all); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			t.Error(err)
		}
	}
	watch(dir)
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range found {
		if entry.IsDir() {
			watch(filepath.Join(dir, entry.Name()))
		}
	}
	events := make(chan struct{}, 1<<20)
	go func() {
		defer close(events)
		defer func() { _ = unix.Close(inotify) }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := unix.Read(inotify, buffer)
			if err != nil {
				return
			}
			for at := 0; at < n; events <- struct{}{} {
				event := buffer[at:]
				length := int(event[12]) | int(event[13])<<8
				name := strings.TrimRight(string(event[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]), "\x00")
				at += unix.SizeofInotifyEvent + length
				if name == stopFile {
					return
				}
				watch(filepath.Join(dir, name))
			}
		}
	}()
	return events
}

func stopWatching(t *testing.T, dir string) {
	t.Helper()
	stop := filepath.Join(dir, stopFile)
	if err := errors.Join(os.WriteFile(stop, nil, 0o600), os.Remove(stop)); err != nil {
		t.Fatal(err)
	}
}

// copied is a copy of a cache.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// fetchUntilKilled is the child. It tells each commit that it had.
func fetchUntilKilled() error {
	factory := transport.New(transport.Options{AllowLoopback: true})
	client, err := git.New(git.Options{
		Transport: factory, CacheDir: os.Getenv("DIR"), MaxCacheBytes: 64 << 20,
		CacheFailed: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		return err
	}
	for hash := range strings.FieldsSeq(os.Getenv("HASHES")) {
		commit, err := client.Fetch(context.Background(), git.Remote{URL: os.Getenv("URL")}, git.Want{Hash: hash, Ref: "refs/heads/main"})
		if err != nil {
			return err
		}
		file, err := commit.Tree().Open("large")
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, file); err != nil {
			return err
		}
		if err := errors.Join(file.Close(), commit.Close()); err != nil {
			return err
		}
		fmt.Println(hash)
	}
	return nil
}
