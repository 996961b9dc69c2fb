package git_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// bench is a repository like those of configuration, and a client of its server.
type bench struct {
	*upstream.Edited
	client *git.Client
	remote git.Remote
	hash   string
}

func newBench(b *testing.B, files int, size, cache int64) *bench {
	b.Helper()
	f := upstream.ForTest(b)
	repository := f.Repository("app")
	hash := repository.Bulk("main", files, size)
	factory := transport.New(transport.Options{AllowLoopback: true})
	b.Cleanup(factory.Close)
	client, err := git.New(git.Options{Transport: factory, TempDir: b.TempDir(), CacheDir: b.TempDir(), MaxCacheBytes: cache})
	if err != nil {
		b.Fatal(err)
	}
	return &bench{repository, client, git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, hash}
}

// fetch fetches the newest commit, which is to be closed.
func (n *bench) fetch(b *testing.B) *git.Commit {
	b.Helper()
	commit, err := n.client.Fetch(b.Context(), n.remote, git.Want{Hash: n.hash, Ref: "refs/heads/main"})
	if err != nil {
		b.Fatal(err)
	}
	return commit
}

// edit commits a change of one line, and that is not counted.
func (n *bench) edit(b *testing.B, file, number int) {
	b.Helper()
	b.StopTimer()
	n.hash = n.Commit("main", "m", upstream.Text(map[string]string{upstream.BulkPath(file): strconv.Itoa(number)}))
	b.StartTimer()
}

func BenchmarkListRefs(b *testing.B) {
	n := newBench(b, 5000, 40<<20, 0)
	b.ReportAllocs()
	for b.Loop() {
		if refs, err := n.client.ListRefs(b.Context(), n.remote, "refs/heads/main"); err != nil || len(refs) != 1 {
			b.Fatal(refs, err)
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	n := newBench(b, 5000, 40<<20, 0)
	b.ReportAllocs()
	var received int64
	var live runtime.MemStats
	for b.Loop() {
		commit := n.fetch(b)
		received = commit.BytesReceived
		runtime.ReadMemStats(&live)
		if err := commit.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(received), "wire-B/op")
	b.ReportMetric(float64(live.Sys), "sys-B")
}

// BenchmarkFetchNext fetches commits that change one line of a tree of 5,000 files, and of one ten times as large.
func BenchmarkFetchNext(b *testing.B) {
	for _, files := range []int{5_000, 50_000} {
		b.Run(strconv.Itoa(files), func(b *testing.B) {
			n := newBench(b, files, int64(files)<<13, 4<<30)
			var received int64
			next := func() {
				commit := n.fetch(b)
				received = commit.BytesReceived
				if err := commit.Close(); err != nil {
					b.Fatal(err)
				}
			}
			next()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				n.edit(b, i%files, i)
				next()
			}
			b.ReportMetric(float64(received), "wire-B/op")
		})
	}
}

func BenchmarkReadTree(b *testing.B) {
	commit := newBench(b, 5000, 40<<20, 0).fetch(b)
	b.ReportAllocs()
	for b.Loop() {
		err := fs.WalkDir(commit.Tree(), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			file, err := commit.Tree().Open(path)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, file); err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := commit.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWarmCommit has a commit of one line archived, in a tree of 5,568 files and in one of ten times as many. The server's
// work is not counted, nor is what storing the archive takes.
func BenchmarkWarmCommit(b *testing.B) {
	for _, times := range []int{1, 10} {
		b.Run(fmt.Sprintf("%dx", times), func(b *testing.B) {
			files := 5568 * times
			n := newBench(b, files, int64(files)<<12, 4<<30)
			before, after := &bytes.Buffer{}, &bytes.Buffer{}
			var index []byte
			var fetching, archiving time.Duration
			next := func() {
				began := ownCPU(b)
				commit := n.fetch(b)
				fetched := ownCPU(b)
				rules, err := archive.ReadRules(b.Context(), commit.Tree(), nil, archive.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				after.Reset()
				index, err = archive.WriteFrom(b.Context(), after, commit.Tree(), rules, archive.Limits{}, archive.Stored{Body: bytes.NewReader(before.Bytes()), Index: index})
				if err != nil {
					b.Fatal(err)
				}
				before, after = after, before
				fetching, archiving = fetching+fetched-began, archiving+ownCPU(b)-fetched
				if err := commit.Close(); err != nil {
					b.Fatal(err)
				}
			}
			next()
			b.Logf("cold: fetch %v, archive %v", fetching, archiving)
			fetching, archiving = 0, 0
			for i := 0; b.Loop(); i++ {
				n.edit(b, i*100%files, i)
				next()
			}
			b.ReportMetric(float64(fetching.Microseconds())/float64(b.N), "fetch-µs/op")
			b.ReportMetric(float64(archiving.Microseconds())/float64(b.N), "archive-µs/op")
			b.ReportMetric(float64(before.Len()), "archive-B")
		})
	}
}

// ownCPU is the CPU time that this process has used.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
