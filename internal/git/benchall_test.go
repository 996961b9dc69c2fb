package git_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// BenchmarkListPackages lists a repository of 1,000 packages and 3,000 tags whose commits are all in the cache: opens all commits,
// finds the packages on the branch, and looks up each tag's package and Kptfile. "One more" fetches a draft beside them.
func BenchmarkListPackages(b *testing.B) {
	f := upstream.ForTest(b)
	s := newShelf(b, f, 1000, 3, 0)
	factory := transport.New(transport.Options{AllowLoopback: true})
	b.Cleanup(factory.Close)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	dir := b.TempDir()
	newOne := func() *git.Client {
		client, err := git.New(git.Options{Transport: factory, TempDir: b.TempDir(), CacheDir: dir, MaxCacheBytes: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		return client
	}
	client := newOne()
	wants := s.wants(client, remote, "refs/tags/")
	began := time.Now()
	commits, err := client.FetchAll(b.Context(), remote, wants)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("cold: %d commits, %d bytes, %v", len(commits), commits[0].BytesReceived, time.Since(began))
	if err := git.CloseAll(commits); err != nil {
		b.Fatal(err)
	}
	list := func(b *testing.B, client *git.Client) (opening, finding, looking, reading time.Duration) {
		b.Helper()
		start := time.Now()
		lap := func() time.Duration {
			now := time.Now()
			defer func() { start = now }()
			return now.Sub(start)
		}
		commits, err := client.FetchAll(b.Context(), remote, wants)
		if err != nil {
			b.Fatal(err)
		}
		opening = lap()
		count := 0
		if err := commits[0].Find("Kptfile", func(git.Found) error { count++; return nil }); err != nil || count != 1000 {
			b.Fatal(count, err)
		}
		finding = lap()
		for i, commit := range commits[1:] {
			if _, err := commit.TreeID(packageAt(wants[i+1].Ref)); err != nil {
				b.Fatal(err)
			}
		}
		looking = lap()
		for i, commit := range commits[1:] {
			if _, err := commit.ReadFile(packageAt(wants[i+1].Ref)+"/Kptfile", 1<<20); err != nil {
				b.Fatal(err)
			}
		}
		reading = lap()
		if err := git.CloseAll(commits); err != nil {
			b.Fatal(err)
		}
		return opening, finding, looking, reading
	}
	report := func(b *testing.B, client *git.Client) {
		b.Helper()
		b.ReportAllocs()
		var opening, finding, looking, reading time.Duration
		for b.Loop() {
			o, f, l, r := list(b, client)
			opening, finding, looking, reading = opening+o, finding+f, looking+l, reading+r
		}
		n := time.Duration(b.N)
		b.ReportMetric(float64((opening / n).Milliseconds()), "open-ms/op")
		b.ReportMetric(float64((finding / n).Milliseconds()), "find-ms/op")
		b.ReportMetric(float64((looking / n).Milliseconds()), "trees-ms/op")
		b.ReportMetric(float64((reading / n).Milliseconds()), "files-ms/op")
	}
	b.Run("one more", func(b *testing.B) {
		var received int64
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			ref := fmt.Sprintf("drafts/%s/next", packagePath(i%1000))
			s.SetRef("refs/heads/"+ref, wants[0].Hash)
			hash := s.Commit(ref, fmt.Sprint(i), upstream.Text(packageOf(i%1000, fmt.Sprint("next", i))))
			b.StartTimer()
			commits, err := client.FetchAll(b.Context(), remote, append(slices.Clip(wants), git.Want{Hash: hash, Ref: "refs/heads/" + ref}))
			if err != nil {
				b.Fatal(err)
			}
			received = commits[0].BytesReceived
			if err := git.CloseAll(commits); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(received), "wire-B/op")
	})
	b.Run("again", func(b *testing.B) { report(b, client) })
}
