package git_test

import (
	"io"
	"io/fs"
	"runtime"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// newBench serves a repository like those of configuration: 5,000 files, 40 MB.
func newBench(b *testing.B) (*git.Client, git.Remote, string) {
	b.Helper()
	f := upstream.ForTest(b)
	repository := f.Repository("app")
	hash, err := repository.Bulk("main", 5000, 40<<20)
	if err != nil {
		b.Fatal(err)
	}
	factory := transport.New(transport.Options{AllowLoopback: true})
	b.Cleanup(factory.Close)
	client, err := git.New(git.Options{Transport: factory, TempDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return client, git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}, hash
}

func BenchmarkListRefs(b *testing.B) {
	client, remote, _ := newBench(b)
	b.ReportAllocs()
	for b.Loop() {
		if refs, err := client.ListRefs(b.Context(), remote, "refs/heads/main"); err != nil || len(refs) != 1 {
			b.Fatal(refs, err)
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	client, remote, hash := newBench(b)
	b.ReportAllocs()
	var received int64
	var live runtime.MemStats
	for b.Loop() {
		commit, err := client.Fetch(b.Context(), remote, git.Want{Hash: hash})
		if err != nil {
			b.Fatal(err)
		}
		received = commit.BytesReceived
		runtime.ReadMemStats(&live)
		if err := commit.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(received), "wire-B/op")
	b.ReportMetric(float64(live.Sys), "sys-B")
}

func BenchmarkReadTree(b *testing.B) {
	client, remote, hash := newBench(b)
	commit, err := client.Fetch(b.Context(), remote, git.Want{Hash: hash})
	if err != nil {
		b.Fatal(err)
	}
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
