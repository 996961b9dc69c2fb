package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"

	"sluice.dev/sluice/internal/archive"
)

// manyFiles is a tree of about 80 MB, which text-like bytes make compressible.
func manyFiles(size int) fstest.MapFS {
	tree := fstest.MapFS{}
	for i, name := range manyNames(5000) {
		line := fmt.Appendf(nil, "  - name: item-%d\n    value: %x\n", i, i*7919)
		tree[name] = &fstest.MapFile{Data: bytes.Repeat(line, size/len(line))}
	}
	return tree
}

func BenchmarkWrite(b *testing.B) {
	tree := snapshot(b, manyFiles(16<<10))
	b.ReportAllocs()
	for b.Loop() {
		check(b, archive.Write(b.Context(), io.Discard, tree, nil, archive.Limits{}))
	}
}

// BenchmarkGzip is the part of BenchmarkWrite that no archive can do without.
func BenchmarkGzip(b *testing.B) {
	var packed bytes.Buffer
	check(b, archive.Write(b.Context(), &packed, manyFiles(16<<10), nil, archive.Limits{}))
	raw := expand(b, packed.Bytes())
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		w := gzip.NewWriter(io.Discard)
		_, err := w.Write(raw)
		check(b, err)
		check(b, w.Close())
	}
}

// BenchmarkWriteSmall is a tree whose files are next to empty, so that what is not gzip shows.
func BenchmarkWriteSmall(b *testing.B) {
	tree := snapshot(b, manyFiles(64))
	b.ReportAllocs()
	for b.Loop() {
		check(b, archive.Write(b.Context(), io.Discard, tree, nil, archive.Limits{}))
	}
}

// BenchmarkWriteWarm archives trees of 80 and 800 MB after a change of one line. Hashing and writing the archive, which
// grow with it, are no part of this; copying it is.
func BenchmarkWriteWarm(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	var words strings.Builder
	for words.Len() < 1<<20 {
		fmt.Fprintf(&words, "  - name: item-%d\n    value: %x\n", random.IntN(1000), random.Uint32())
	}
	for _, times := range []int{1, 10} {
		b.Run(fmt.Sprintf("%dx", times), func(b *testing.B) {
			garden, limits := &plot{files: map[string]string{}}, archive.Limits{MaxBytes: 1 << 40, MaxFiles: 1 << 20}
			for i := range 5500 * times {
				at := random.IntN(1<<20 - 30<<10)
				garden.files[fmt.Sprintf("teams/team-%02d/app-%04d/file-%d.yaml", i%20, i/20%(20*times), i)] = words.String()[at : at+i*7919%(29<<10)]
			}
			var before bytes.Buffer
			index, err := archive.WriteFrom(b.Context(), &before, garden.tree(), nil, limits, archive.Stored{})
			check(b, err)
			garden.files["teams/team-07/app-0007/file-147.yaml"] += "one line more\n"
			tree := garden.tree()
			b.ReportAllocs()
			for b.Loop() {
				rules, err := archive.ReadRules(b.Context(), tree, nil, limits)
				check(b, err)
				_, err = archive.WriteFrom(b.Context(), io.Discard, tree, rules, limits, archive.Stored{Body: bytes.NewReader(before.Bytes()), Index: index})
				check(b, err)
			}
			b.ReportMetric(float64(before.Len()), "archive-B")
			b.ReportMetric(float64(len(index)), "index-B")
			b.ReportMetric(float64(len(garden.opened)), "files")
			b.ReportMetric(float64(len(garden.listed)), "folders")
		})
	}
}

func BenchmarkReadRules(b *testing.B) {
	tree := snapshot(b, manyFiles(64))
	b.ReportAllocs()
	for b.Loop() {
		_, err := archive.ReadRules(b.Context(), tree, nil, archive.Limits{})
		check(b, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	var packed bytes.Buffer
	check(b, archive.Write(b.Context(), &packed, manyFiles(16<<10), nil, archive.Limits{}))
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		tree, err := archive.Open(b.Context(), bytes.NewReader(packed.Bytes()), dir, archive.Limits{})
		check(b, err)
		check(b, tree.Close())
	}
}

// snapshot gives a tree that costs next to nothing to read.
func snapshot(b *testing.B, tree fstest.MapFS) *archive.Tree {
	b.Helper()
	var packed bytes.Buffer
	check(b, archive.Write(b.Context(), &packed, tree, nil, archive.Limits{}))
	opened, err := archive.Open(b.Context(), &packed, b.TempDir(), archive.Limits{})
	check(b, err)
	b.Cleanup(func() { check(b, opened.Close()) })
	return opened
}

func BenchmarkExcludedDefault(b *testing.B) {
	names := manyNames(5000)
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range names {
			(*archive.Rules)(nil).Excluded(name, false)
		}
	}
}

func BenchmarkExcludedOracle(b *testing.B) {
	names, matcher := manyNames(5000), sourceignore.NewDefaultMatcher(nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range names {
			matcher.Match(strings.Split(name, "/"), false)
		}
	}
}

func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("apps/team-%02d/service-%03d/file-%d.yaml", i%20, i%100, i)
	}
	return names
}

// layer is a gzip layer of about 50 MB, which is what registries hold most.
func layer(b *testing.B) []byte {
	b.Helper()
	var items []item
	for i, name := range manyNames(400) {
		// Half of it compresses as text does, half not at all.
		text := bytes.Repeat(fmt.Appendf(nil, "  - name: item-%d\n    value: %x\n", i, i*7919), 6000)
		items = append(items, item{Header: tar.Header{Name: name}, body: noise(120<<10) + string(text)})
	}
	packed := craft(b, items...)
	b.Logf("%d MB packed", len(packed)/1e6)
	return packed
}

func BenchmarkOpenLayer(b *testing.B) {
	packed := layer(b)
	raw := expand(b, packed)
	for name, packed := range map[string][]byte{"gzip": packed, "zstd": squeeze(b, raw), "tar": raw} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			b.SetBytes(int64(len(packed)))
			b.ReportAllocs()
			for b.Loop() {
				tree, err := archive.OpenLayer(b.Context(), bytes.NewReader(packed), dir, archive.Limits{})
				check(b, err)
				check(b, tree.Close())
			}
		})
	}
}

// BenchmarkExpand is the part of BenchmarkOpenLayer that no reader of a layer can do without.
func BenchmarkExpand(b *testing.B) {
	packed := layer(b)
	b.SetBytes(int64(len(packed)))
	for b.Loop() {
		r, err := gzip.NewReader(bytes.NewReader(packed))
		check(b, err)
		_, err = io.Copy(io.Discard, r)
		check(b, err)
	}
}
