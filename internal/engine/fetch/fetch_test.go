package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// counter observes.
type counter struct {
	hits, downloads, failures, bytes, held, heldBytes atomic.Int64
}

func (c *counter) Hit() { c.hits.Add(1) }

func (c *counter) Downloaded(n int64, err error) {
	c.downloads.Add(1)
	c.bytes.Add(n)
	if err != nil {
		c.failures.Add(1)
	}
}

func (c *counter) Held(count int, bytes int64) {
	c.held.Store(int64(count))
	c.heldBytes.Store(bytes)
}

// server serves one artifact, and lets a test say what comes before it.
type server struct {
	*httptest.Server
	body  []byte
	asked atomic.Int64

	mu    sync.Mutex
	first []http.HandlerFunc
}

func serve(t *testing.T, body []byte, first ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{body: body, first: first}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.mu.Lock()
	var next http.HandlerFunc
	if len(s.first) > 0 {
		next, s.first = s.first[0], s.first[1:]
	}
	s.mu.Unlock()
	if next != nil {
		next(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	_, _ = w.Write(s.body)
}

func (s *server) artifact() fetch.Artifact {
	return fetch.Artifact{
		URL: s.URL + "/gitrepository/apps/site/abc.tar.gz", Digest: digest(s.body), Size: int64(len(s.body)), Revision: "main@sha1:abc",
	}
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func pack(tb testing.TB, content string) []byte {
	tb.Helper()
	var out bytes.Buffer
	tree := fstest.MapFS{"apps/config.yaml": {Data: []byte(content)}}
	check(tb, archive.Write(tb.Context(), &out, tree, nil, archive.Limits{}))
	return out.Bytes()
}

func open(t *testing.T, options fetch.Options) *fetch.Cache {
	t.Helper()
	factory := transport.New(transport.Options{AllowLoopback: true})
	options.Dir = t.TempDir()
	if options.Clock == nil {
		// A slow machine is no slow server.
		options.Patience, options.Attempt = time.Hour, time.Hour
	}
	cache := fetch.New(factory, options)
	t.Cleanup(func() {
		cache.Close()
		factory.Close()
	})
	return cache
}

func content(t *testing.T, lease *fetch.Lease) string {
	t.Helper()
	text, err := fs.ReadFile(lease.FS, "apps/config.yaml")
	check(t, err)
	return string(text)
}

func answer(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestNinetyThreeConsumersDownloadOnce(t *testing.T) {
	t.Parallel()
	const consumers = 93
	gate := make(chan struct{})
	seen := &counter{}
	s := serve(t, pack(t, "a"))
	s.first = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		_, _ = w.Write(s.body)
	}}
	cache := open(t, fetch.Options{Observer: seen})
	var group sync.WaitGroup
	for i := range consumers {
		group.Go(func() {
			a := s.artifact()
			a.Revision = fmt.Sprint("seen as ", i)
			lease, err := cache.Acquire(t.Context(), a)
			if err != nil {
				t.Error(err)
				return
			}
			defer lease.Release()
			if got, err := fs.ReadFile(lease.FS, "apps/config.yaml"); string(got) != "a" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			lease.Release()
		})
	}
	close(gate)
	group.Wait()
	if asked := s.asked.Load(); asked != 1 {
		t.Errorf("%d downloads", asked)
	}
	if seen.downloads.Load() != 1 || seen.bytes.Load() != int64(len(s.body)) || seen.held.Load() != 1 {
		t.Errorf("observed %d downloads of %d bytes, %d held", seen.downloads.Load(), seen.bytes.Load(), seen.held.Load())
	}
	lease, err := cache.Acquire(t.Context(), s.artifact())
	check(t, err)
	lease.Release()
	if s.asked.Load() != 1 || seen.hits.Load() == 0 {
		t.Error("what is in the cache was downloaded again")
	}
}

func TestOneWaiterGivesUpAlone(t *testing.T) {
	t.Parallel()
	asked, gate := make(chan struct{}), make(chan struct{})
	s := serve(t, pack(t, "a"))
	s.first = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-gate
		_, _ = w.Write(s.body)
	}}
	cache := open(t, fetch.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := cache.Acquire(ctx, s.artifact())
		first <- err
	}()
	<-asked
	second := make(chan error, 1)
	joined := make(chan struct{})
	go func() {
		close(joined)
		lease, err := cache.Acquire(t.Context(), s.artifact())
		if err == nil {
			lease.Release()
		}
		second <- err
	}()
	<-joined
	third := make(chan error, 1)
	go func() {
		lease, err := cache.Acquire(t.Context(), s.artifact())
		if err == nil {
			lease.Release()
		}
		third <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the one who gave up got %v", err)
	}
	close(gate)
	check(t, <-second)
	check(t, <-third)
}

func TestDownloadGoesOnWithoutThoseWhoAsked(t *testing.T) {
	t.Parallel()
	asked, gate := make(chan struct{}), make(chan struct{})
	s := serve(t, pack(t, "a"))
	s.first = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-gate
		_, _ = w.Write(s.body)
	}}
	cache := open(t, fetch.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := cache.Acquire(ctx, s.artifact())
		first <- err
	}()
	<-asked
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(gate)
	lease, err := cache.Acquire(t.Context(), s.artifact())
	check(t, err)
	lease.Release()
	if got := s.asked.Load(); got != 1 {
		t.Errorf("%d downloads", got)
	}
}

func cutAfter(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write(bytes.Repeat([]byte{0x1f}, n))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func send(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestFailuresSayWhatToLookAt(t *testing.T) {
	t.Parallel()
	body := pack(t, "a")
	bomb := pack(t, strings.Repeat("a", 1<<20))
	tests := map[string]struct {
		reason   string
		body     []byte
		first    []http.HandlerFunc
		change   func(*fetch.Artifact)
		options  fetch.Options
		want     error
		kind     string
		says     string
		attempts int64
	}{
		"gone":           {"the source may be rebuilding it", body, []http.HandlerFunc{answer(404)}, nil, fetch.Options{}, fetch.ErrUnavailable, fetch.ReasonUnavailable, "look at the source's Ready condition", 1},
		"other bytes":    {"the source may have replaced it just now, and tells of that", body, []http.HandlerFunc{send("x")}, nil, fetch.Options{}, fetch.ErrDigest, fetch.ReasonMismatch, "announced digest sha256:", 1},
		"forbidden":      {"somebody has to allow it", body, []http.HandlerFunc{answer(403)}, nil, fetch.Options{}, fetch.ErrStatus, fetch.ReasonUnavailable, "403 Forbidden", 1},
		"larger":         {"cut at the announced size", body, nil, func(a *fetch.Artifact) { a.Size-- }, fetch.Options{}, fetch.ErrTooLarge, fetch.ReasonInvalid, "announced", 1},
		"limit":          {"cut at the limit without a size", body, nil, func(a *fetch.Artifact) { a.Size = 0 }, fetch.Options{MaxDownload: 20}, fetch.ErrTooLarge, fetch.ReasonInvalid, "20 bytes", 1},
		"bomb":           {"unpacked size is bounded", bomb, nil, nil, fetch.Options{Limits: archive.Limits{MaxBytes: 1000}}, archive.ErrLimit, fetch.ReasonInvalid, "1000", 1},
		"no archive":     {"the right bytes are no tar.gz", []byte("hello"), nil, nil, fetch.Options{}, archive.ErrCorrupt, fetch.ReasonInvalid, "damaged", 1},
		"unsafe":         {"nor a harmless one", escaping(t), nil, nil, fetch.Options{}, archive.ErrUnsafe, fetch.ReasonInvalid, "unsafe", 1},
		"no digest":      {"nothing is fetched unverified", body, nil, func(a *fetch.Artifact) { a.Digest = "" }, fetch.Options{}, fetch.ErrArtifact, fetch.ReasonInvalid, "none of sha256", 0},
		"weak digest":    {"nor by a weak digest", body, nil, func(a *fetch.Artifact) { a.Digest = "md5:00" }, fetch.Options{}, fetch.ErrArtifact, fetch.ReasonInvalid, "none of sha256", 0},
		"half a digest":  {"nor by half of one", body, nil, func(a *fetch.Artifact) { a.Digest = "sha256:00" }, fetch.Options{}, fetch.ErrArtifact, fetch.ReasonInvalid, "not whole", 0},
		"no http":        {"files of our own are not fetched", body, nil, func(a *fetch.Artifact) { a.URL = "file:///etc/passwd" }, fetch.Options{}, fetch.ErrArtifact, fetch.ReasonInvalid, "origin", 0},
		"metadata":       {"some addresses are never dialled", body, nil, func(a *fetch.Artifact) { a.URL = "http://169.254.169.254/x" }, fetch.Options{}, fetch.ErrStatus, fetch.ReasonUnavailable, "denied", 0},
		"nobody listens": {"the server may come back", body, nil, func(a *fetch.Artifact) { a.URL = "http://127.0.0.1:1/x" }, fetch.Options{}, fetch.ErrUnavailable, fetch.ReasonUnavailable, "reachable", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, test.body, test.first...)
			cache := open(t, test.options)
			a := s.artifact()
			if test.change != nil {
				test.change(&a)
			}
			lease, err := cache.Acquire(t.Context(), a)
			if lease != nil || !errors.Is(err, test.want) {
				t.Fatalf("%s: got %v", test.reason, err)
			}
			want := failure.Retries
			if test.kind == fetch.ReasonUnavailable {
				want = failure.Waits
			}
			if f := failure.Of(err); f.Reason != test.kind || f.Disposition != want {
				t.Errorf("got reason %s, disposition %d", f.Reason, f.Disposition)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), a.URL) {
				t.Errorf("the error does not say %q and the url: %v", test.says, err)
			}
			if got := s.asked.Load(); test.attempts > 0 && got != test.attempts {
				t.Errorf("%d attempts", got)
			}
		})
	}
}

// escaping is an archive whose one file would be written elsewhere.
func escaping(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	check(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "../x"}))
	check(t, w.Close())
	check(t, packed.Close())
	return out.Bytes()
}

func TestVerdictIsRememberedAndMismatchIsNot(t *testing.T) {
	t.Parallel()
	s := serve(t, []byte("hello"))
	passing := newClock()
	cache := open(t, fetch.Options{Clock: passing})
	for range 3 {
		if _, err := cache.Acquire(t.Context(), s.artifact()); !errors.Is(err, archive.ErrCorrupt) {
			t.Fatal(err)
		}
	}
	if s.asked.Load() != 1 {
		t.Errorf("what cannot be unpacked was downloaded %d times", s.asked.Load())
	}

	good := serve(t, pack(t, "a"), send("x"))
	if _, err := cache.Acquire(t.Context(), good.artifact()); !errors.Is(err, fetch.ErrDigest) {
		t.Fatal(err)
	}
	passing.Step(time.Second)
	lease, err := cache.Acquire(t.Context(), good.artifact())
	check(t, err)
	lease.Release()
}

func TestDeadlineSaysWhyItTookSoLong(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := serve(t, pack(t, "a"), func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	cache := open(t, fetch.Options{})
	ctx := &expiring{Context: t.Context(), done: make(chan struct{})}
	got := make(chan error, 1)
	go func() {
		_, err := cache.Acquire(ctx, s.artifact())
		got <- err
	}()
	<-asked
	close(ctx.done)
	err := <-got
	if !errors.Is(err, fetch.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer yet") {
		t.Errorf("got %v", err)
	}
	cache.Close() // It calls the download back, for which the server waits.
}

// expiring is a context whose deadline passes when the test says so.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }
func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestDigestAlgorithms(t *testing.T) {
	t.Parallel()
	s := serve(t, pack(t, "a"))
	long, middle := sha512.Sum512(s.body), sha512.Sum384(s.body)
	for _, digest := range []string{"sha512:" + hex.EncodeToString(long[:]), "sha384:" + hex.EncodeToString(middle[:]), digest(s.body)} {
		a := s.artifact()
		a.Digest = digest
		lease, err := open(t, fetch.Options{}).Acquire(t.Context(), a)
		check(t, err)
		lease.Release()
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		options fetch.Options
	}{
		"by count": {"two artifacts may stay", fetch.Options{MaxCount: 2}},
		"by bytes": {"each weighs its content and a bit for each of three entries", fetch.Options{MaxBytes: 2 * (1000 + 3*512)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &counter{}
			test.options.Observer = seen
			cache := open(t, test.options)
			var servers []*server
			for i := range 4 {
				// Folders weigh the zero bytes that the archive says.
				servers = append(servers, serve(t, pack(t, strings.Repeat(string(rune('a'+i)), 1000))))
			}
			acquire := func(i int) *fetch.Lease {
				lease, err := cache.Acquire(t.Context(), servers[i].artifact())
				check(t, err)
				return lease
			}
			held := acquire(0)
			acquire(1).Release()
			acquire(2).Release() // 1 has to go: 0 is in use.
			acquire(3).Release() // 2 has to go.
			if got := content(t, held); got != strings.Repeat("a", 1000) {
				t.Errorf("what is in use was given up: %q", got)
			}
			held.Release()
			held.Release()
			acquire(0).Release()
			acquire(3).Release()
			acquire(1).Release()
			for i, want := range []int64{1, 2, 1, 1} {
				if got := servers[i].asked.Load(); got != want {
					t.Errorf("%s: artifact %d was downloaded %d times, want %d", test.reason, i, got, want)
				}
			}
			if seen.held.Load() > 3 {
				t.Errorf("%d held", seen.held.Load())
			}
		})
	}
}

func TestSameDigestFromAnotherURLIsNotHeldUp(t *testing.T) {
	t.Parallel()
	body := pack(t, "a")
	asked := make(chan struct{})
	slow := serve(t, body, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	quick := serve(t, body)
	cache := open(t, fetch.Options{})
	waited := make(chan error, 1)
	go func() {
		_, err := cache.Acquire(t.Context(), slow.artifact())
		waited <- err
	}()
	<-asked
	lease, err := cache.Acquire(t.Context(), quick.artifact())
	check(t, err)
	lease.Release()
	cache.Close()
	if err := <-waited; !errors.Is(err, fetch.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := serve(t, pack(t, "a"), func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	cache := open(t, fetch.Options{})
	got := make(chan error, 1)
	go func() {
		_, err := cache.Acquire(t.Context(), s.artifact())
		got <- err
	}()
	<-asked
	cache.Close()
	if err := <-got; !errors.Is(err, fetch.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := cache.Acquire(t.Context(), s.artifact()); !errors.Is(err, fetch.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestNamespacesShareTheDownloads(t *testing.T) {
	t.Parallel()
	gate, begun := make(chan struct{}), make(chan struct{}, 2)
	slow := func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-gate
		panic(http.ErrAbortHandler)
	}
	cache := open(t, fetch.Options{Parallel: 2})
	var group sync.WaitGroup
	for _, name := range []string{"a1", "a2"} {
		artifact := serve(t, pack(t, name), slow).artifact()
		artifact.Namespace = "a"
		group.Go(func() {
			if _, err := cache.Acquire(t.Context(), artifact); !errors.Is(err, fetch.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	<-begun
	<-begun
	body, asked := pack(t, "b"), make(chan struct{})
	other := serve(t, body, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		_, _ = w.Write(body)
	}).artifact()
	other.Namespace = "b"
	// Whoever hangs may say that the own sources have what others serve.
	forged, ended := other, make(chan struct{})
	forged.Namespace = "a"
	asking, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_, _ = cache.Acquire(asking, forged)
	}()
	<-asked
	lease, err := cache.Acquire(t.Context(), other)
	check(t, err)
	lease.Release()
	cancel()
	<-ended
	close(gate)
	group.Wait()
}
