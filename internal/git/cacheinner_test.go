package git

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/transport"
)

// TestForeignFilesAreLeftAlone: somebody may name a folder that is not the cache's alone.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign := []string{"precious", strings.Repeat("x", 64), strings.Repeat("a", 63)}
	for _, name := range foreign {
		if err := os.MkdirAll(filepath.Join(dir, name, "in it"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	left := strings.Repeat("a", 64)
	if err := os.MkdirAll(filepath.Join(dir, left), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := newCache(Options{CacheDir: dir, MaxCacheBytes: 1}.withDefaults()).hold(t.Context(), strings.Repeat("b", 64))
	if err != nil {
		t.Fatal(err)
	}
	h.release(t.Context())
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name, "in it")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
		t.Error("what a killed process left is still there")
	}
}

// TestPartsThatAreSavedAgainCountOnce: many objects may have the same archive.
func TestPartsThatAreSavedAgainCountOnce(t *testing.T) {
	t.Parallel()
	c := newCache(Options{CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}.withDefaults())
	h, err := c.hold(t.Context(), strings.Repeat("b", 64))
	if err != nil {
		t.Fatal(err)
	}
	defer h.release(t.Context())
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		h.parts().Save(digest.FromString("archive"), make([]byte, 1000+i))
	}
	if want := keepOnly(h.dir, ""); c.size != want || h.folder.size != want {
		t.Errorf("%d and %d bytes are counted, want %d", c.size, h.folder.size, want)
	}
}

// TestNobodyWaitsForAnothersIndex, however slow the disk takes it.
func TestNobodyWaitsForAnothersIndex(t *testing.T) {
	t.Parallel()
	c := newCache(Options{CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}.withDefaults())
	h, err := c.hold(t.Context(), strings.Repeat("b", 64))
	if err != nil {
		t.Fatal(err)
	}
	defer h.release(t.Context())
	// A pipe takes no more before somebody reads.
	path := h.parts().path(digest.FromString("archive"))
	if err := errors.Join(os.MkdirAll(h.dir, 0o700), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var saving sync.WaitGroup
	saving.Go(func() { h.parts().Save(digest.FromString("archive"), make([]byte, 1<<20)) })
	if _, err := pipe.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	others := make(chan error)
	go func() {
		other, err := c.hold(t.Context(), strings.Repeat("c", 64))
		other.release(t.Context())
		others <- err
	}()
	select {
	case err = <-others:
	case <-time.After(time.Minute):
		err = errors.New("they wait")
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }() // It ends the waiting.
	saving.Wait()
	if err := errors.Join(err, pipe.Close()); err != nil {
		t.Error(err)
	}
}

// TestNobodyWaitsForAnEviction, however long the disk takes to give a large folder back.
func TestNobodyWaitsForAnEviction(t *testing.T) {
	t.Parallel()
	c := newCache(Options{CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}.withDefaults())
	name := strings.Repeat("b", 64)
	for range 100 {
		h, err := c.hold(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		err = os.MkdirAll(h.dir, 0o700)
		for i := range 500 {
			err = errors.Join(err, os.WriteFile(filepath.Join(h.dir, fmt.Sprint("data-", i)), nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		h.folder.size, c.size = 2<<20, 2<<20
		c.mu.Unlock()
		ended := make(chan struct{})
		go func() {
			h.release(t.Context())
			close(ended)
		}()
		var free bool
		for ongoing := true; ongoing; {
			select {
			case <-ended:
				ongoing = false
			default:
				c.mu.Lock()
				left, _ := filepath.Glob(filepath.Join(c.dir, "*", "*"))
				free = free || c.folders[name] == nil && len(left) > 0
				c.mu.Unlock()
			}
		}
		if left, err := os.ReadDir(c.dir); err != nil || len(left) != 1 {
			t.Fatalf("besides the lock there are %v, %v", left, err)
		}
		if free {
			return
		}
	}
	t.Error("the cache is of no use to others while a folder is removed")
}

// TestShorteningTakesLittleMemory, however large and many the objects are: none of it is drawn.
func TestShorteningTakesLittleMemory(t *testing.T) { //nolint:paralleltest // It counts what is allocated.
	const size, many = 1 << 16, 30
	w := &packWriter{t: t}
	w.blob(strings.Repeat("0", size))
	for i := range maxChain {
		w.offsetDelta(i, same(size, byte(i)))
	}
	limits := fuzzLimits
	limits.unpacked = 1 << 30
	k, name := keptPack(t, w.bytes(), limits)
	thin := &packWriter{t: t}
	for i := range many {
		thin.refDelta(k.objects[maxChain].hash, same(size, byte(100+i)))
	}
	p := over(t, k, name, thin.bytes())
	p.work.Store(1 << 40)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.index(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 12<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
	checkObjects(t, p, true)
}

// omitter is a server that leaves out all but the commit whenever it is told what is there already.
type omitter struct {
	commits map[string][]byte // the whole pack of each
	without map[string][]byte
	asked   atomic.Int64
}

func (l *omitter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", uploadPack.mediaType("advertisement"))
		_, _ = w.Write(appendFlush(appendLine(appendLine(appendFlush(appendLine(nil, "# service=git-upload-pack")), "version 2"), "fetch=shallow")))
		return
	}
	l.asked.Add(1)
	question, _ := io.ReadAll(r.Body)
	_, hash, _ := strings.Cut(string(question), "want ")
	packs := l.commits
	if strings.Contains(string(question), "have ") {
		packs = l.without
	}
	w.Header().Set("Content-Type", uploadPack.mediaType("result"))
	answer := appendLine(nil, "packfile")
	pack := packs[hash[:40]]
	answer = fmt.Appendf(answer, "%04x\x01%s", len(pack)+5, pack)
	_, _ = w.Write(appendFlush(answer))
}

// single makes what fetches one commit.
func single(t *testing.T, client *Client, url string) func(hash string) (*Commit, error) {
	t.Helper()
	return func(hash string) (*Commit, error) {
		return client.Fetch(t.Context(), Remote{URL: url}, Want{Hash: hash})
	}
}

// newOmitter starts a server, and gives what fetches from it, in the way that is made, and keeps that.
func newOmitter(
	t *testing.T, fetching func(t *testing.T, client *Client, url string) func(hash string) (*Commit, error),
) (*omitter, func(hash string) (*Commit, error)) {
	t.Helper()
	l := &omitter{commits: map[string][]byte{}, without: map[string][]byte{}}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	client, err := New(Options{Transport: factory, CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return l, fetching(t, client, server.URL+"/app")
}

// add makes a commit of a file with the text, and returns its id. Its pack has other trees as well.
func (l *omitter) add(t *testing.T, text string, others ...string) string {
	t.Helper()
	tree := treeOf(text)
	commit := fmt.Sprintf("tree %s\nauthor A <a> 1 +0000\ncommitter C <c> 1 +0000\n\nm", plumbing.ComputeHash(plumbing.TreeObject, []byte(tree)))
	hash := plumbing.ComputeHash(plumbing.CommitObject, []byte(commit)).String()
	w := &packWriter{t: t}
	w.add(plumbing.CommitObject, len(commit), nil, []byte(commit))
	l.without[hash] = w.bytes()
	w.blob(text)
	for _, tree := range append(others, tree) {
		w.add(plumbing.TreeObject, len(tree), nil, []byte(tree))
	}
	l.commits[hash] = w.bytes()
	return hash
}

// treeOf is a tree that has a file with the text.
func treeOf(text string) string {
	blob := plumbing.ComputeHash(plumbing.BlobObject, []byte(text))
	return "100644 file\x00" + string(blob[:])
}

// TestATreeThatCameTooEarlyIsFoundOut: without its files, in a fetch that had no use for it, so that the next one takes it to
// be there. What is missing is noticed, and fetched.
func TestATreeThatCameTooEarlyIsFoundOut(t *testing.T) {
	t.Parallel()
	l, fetch := newOmitter(t, single)
	for _, c := range []struct{ text, hash string }{{"first", l.add(t, "first", treeOf("second"))}, {"second", l.add(t, "second")}} {
		commit, err := fetch(c.hash)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := fs.ReadFile(commit.Tree(), "file"); string(got) != c.text {
			t.Errorf("want %q, got %q, %v", c.text, got, err)
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestALiarIsNotBelievedForEver: what it leaves out is fetched, and soon it is not told any more what is there.
func TestALiarIsNotBelievedForEver(t *testing.T) {
	t.Parallel()
	l, fetch := newOmitter(t, single)
	for i := range 8 {
		hash := l.add(t, fmt.Sprint("text ", i))
		before := l.asked.Load()
		commit, err := fetch(hash)
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
		want := int64(2)
		if i == 0 || i > maxDoubts {
			want = 1
		}
		if asked := l.asked.Load() - before; asked != want {
			t.Errorf("commit %d took %d questions, want %d", i, asked, want)
		}
	}
}

// TestNobodyWaitsInALineOfThoseWhoFail: who waits for a fetch whose time ends goes on without the cache.
func TestNobodyWaitsInALineOfThoseWhoFail(t *testing.T) {
	t.Parallel()
	c := newCache(Options{CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}.withDefaults())
	name := strings.Repeat("b", 64)
	hangs, cancel := context.WithCancel(t.Context())
	first, err := c.hold(hangs, name)
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if h, err := c.hold(t.Context(), name); h != nil || err != nil {
				t.Errorf("got %v, %v", h, err)
			}
		})
	}
	for {
		c.mu.Lock()
		users := first.folder.users
		c.mu.Unlock()
		if users == 6 {
			break
		}
		runtime.Gosched()
	}
	cancel()
	first.release(hangs)
	waiting.Wait()
	next, err := c.hold(t.Context(), name)
	if next == nil || err != nil {
		t.Fatalf("afterwards: %v, %v", next, err)
	}
	next.release(t.Context())
}

// TestNobodyIsRememberedWithoutAnything: whoever writes URLs makes up as many names as he likes.
func TestNobodyIsRememberedWithoutAnything(t *testing.T) {
	t.Parallel()
	c := newCache(Options{CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}.withDefaults())
	for i := range 100 {
		h, err := c.hold(t.Context(), fmt.Sprintf("%064x", i))
		if err != nil {
			t.Fatal(err)
		}
		parts := h.parts()
		h.release(t.Context())
		parts.Save(digest.FromString("archive"), []byte("index"))
	}
	if len(c.folders) > 0 || c.size != 0 {
		t.Errorf("%d repositories are remembered, with %d bytes", len(c.folders), c.size)
	}
}

// TestAPushWaitsForNobodysFetch: it is done, and only what is kept for later is missing.
func TestAPushWaitsForNobodysFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		factory := transport.New(transport.Options{})
		defer factory.Close()
		client, err := New(Options{Transport: factory, CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		pushed := newPushed(t, client)
		name := strings.Repeat("b", 64)
		fetching, err := client.cache.hold(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		done := false
		go func() {
			client.remember(t.Context(), name, pushed)
			done = true
		}()
		synctest.Wait()
		if !done {
			t.Error("it waits")
		}
		fetching.release(t.Context())
		synctest.Wait()
	})
}

// TestWhoGivesUpIsNoFaultOfTheCache: a manager that stops reports none.
func TestWhoGivesUpIsNoFaultOfTheCache(t *testing.T) {
	t.Parallel()
	factory := transport.New(transport.Options{})
	defer factory.Close()
	client, err := New(Options{
		Transport: factory, CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20, CacheFailed: func(err error) { t.Errorf("told of %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client.remember(&late{Context: ctx}, strings.Repeat("b", 64), newPushed(t, client))
}

// late is a context whose end is not seen at the first look.
type late struct {
	context.Context
	seen bool
}

func (l *late) Err() error {
	if !l.seen {
		l.seen = true
		return nil
	}
	return l.Context.Err()
}

// newPushed is a push of one commit that the server took.
func newPushed(t *testing.T, client *Client) *push {
	t.Helper()
	objects := client.Compose(t.Context())
	t.Cleanup(func() {
		if err := objects.Close(); err != nil {
			t.Error(err)
		}
	})
	who := Identity{Name: "Ada", Email: "ada@example.org", When: time.Unix(1, 0)}
	id, err := objects.Commit(t.Context(), NewCommit{Author: who, Committer: who})
	if err != nil {
		t.Fatal(err)
	}
	return &push{
		PushRequest: PushRequest{Objects: objects}, commands: []command{{Update: Update{Ref: "refs/heads/main", New: id}}},
	}
}

// TestACommitThatNobodyCanReadCostsTheOthersNothing: it is as it was made, and to fetch it again changes nothing.
func TestACommitThatNobodyCanReadCostsTheOthersNothing(t *testing.T) {
	t.Parallel()
	l, fetch := newOmitter(t, func(t *testing.T, client *Client, url string) func(hash string) (*Commit, error) {
		t.Helper()
		return func(hash string) (*Commit, error) {
			return client.Fetch(t.Context(), Remote{URL: url}, Want{Hash: hash, Ref: "refs/heads/main"})
		}
	})
	good, bad := l.add(t, "good"), l.addUnreadable(t)
	for i, hash := range []string{good, bad, bad, bad, bad, good} {
		asked := l.asked.Load()
		commit, err := fetch(hash)
		if isBad := err != nil; isBad != (hash == bad) {
			t.Errorf("fetch %d: %v", i, err)
		}
		if err == nil {
			err = commit.Close()
		}
		if hash == good && err != nil || i > 1 && l.asked.Load() > asked {
			t.Errorf("fetch %d asked the server, or %v", i, err)
		}
	}
}

// addUnreadable makes a commit of a file that is a tree.
func (l *omitter) addUnreadable(t *testing.T) string {
	t.Helper()
	inner := treeOf("inner")
	id := plumbing.ComputeHash(plumbing.TreeObject, []byte(inner))
	tree := "100644 file\x00" + string(id[:])
	commit := fmt.Sprintf("tree %s\nauthor A <a> 1 +0000\ncommitter C <c> 1 +0000\n\nm", plumbing.ComputeHash(plumbing.TreeObject, []byte(tree)))
	hash := plumbing.ComputeHash(plumbing.CommitObject, []byte(commit)).String()
	w := &packWriter{t: t}
	w.add(plumbing.CommitObject, len(commit), nil, []byte(commit))
	for _, tree := range []string{inner, tree} {
		w.add(plumbing.TreeObject, len(tree), nil, []byte(tree))
	}
	l.commits[hash], l.without[hash] = w.bytes(), w.bytes()
	return hash
}

// TestWhatIsRememberedCanBeRead, however many refs were pushed at once.
func TestWhatIsRememberedCanBeRead(t *testing.T) {
	t.Parallel()
	members := func(n int, tag byte) (all []member) {
		for i := range n {
			var m member
			m.ref = refID(fmt.Sprint(tag, i))
			binary.LittleEndian.PutUint64(m.commit[:], m.ref)
			all = append(all, m)
		}
		return all
	}
	k := &kept{remembered: (*kept)(nil).joined(members(maxWants, 'a'))}
	k.remembered = k.joined(members(maxWants+1, 'b'))
	if err := (&kept{}).decode(k.encode("data-1"), 1<<20); err != nil {
		t.Errorf("%d are remembered: %v", len(k.crowd), err)
	}
}
