package index_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/helm/index"
)

// large is an index of 25,050 versions in 150 charts, as Helm writes it; extra adds one version more.
func large(extra bool) []byte {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for chart := range 150 {
		fmt.Fprintf(&text, "  chart-%03d:\n", chart)
		versions := 167
		if extra && chart == 75 {
			versions++
		}
		for v := versions; v > 0; v-- {
			fmt.Fprintf(&text, largeVersion, chart, sha256.Sum256(fmt.Append(nil, chart, v)), chart, v, chart, v)
		}
	}
	text.WriteString("generated: \"2026-01-02T03:04:05.123456789Z\"\n")
	return []byte(text.String())
}

const largeVersion = `  - annotations:
      artifacthub.io/license: Apache-2.0
      category: Database
      images: |
        - name: server
          image: docker.io/example/server:16.4.0-debian-12-r9
        - name: exporter
          image: docker.io/example/exporter:0.15.0-debian-12-r40
    apiVersion: v2
    appVersion: 16.4.0
    created: "2026-01-02T03:04:05.123456789Z"
    dependencies:
    - name: common
      repository: oci://registry.example.com/charts
      tags:
      - common
      version: 2.x.x
    description: A chart of chart-%03d that is described at some length, so that the line is
      folded as Helm does it.
    digest: a%x
    home: https://example.com
    icon: https://example.com/assets/stacks/server/img/server-stack-220x234.png
    keywords:
    - server
    - database
    - replication
    - cluster
    maintainers:
    - name: Example, Inc.
      url: https://github.com/example/charts
    name: chart-%03d
    sources:
    - https://github.com/example/charts/tree/main/server
    urls:
    - https://charts.example.com/files/server-1.%d.0.tgz
    - https://mirror.example.com/files/chart-%03d.tgz
    version: 1.%d.0
`

// BenchmarkIndex has what a changed index costs beside what is compared with: uncompressing and hashing it, and the library's
// strict reading.
func BenchmarkIndex(b *testing.B) {
	before, after := large(false), large(true)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(after) // A buffer takes all.
	_ = w.Close()
	old, err := convert(b, before, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("gunzip+sha256", func(b *testing.B) {
		for b.Loop() {
			r, err := gzip.NewReader(bytes.NewReader(packed.Bytes()))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(sha256.New(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	run := func(name string, previous func() *index.Previous) {
		b.Run(name, func(b *testing.B) {
			scratch, err := os.Create(filepath.Join(b.TempDir(), "scratch"))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				to, err := os.Create(filepath.Join(b.TempDir(), "stored"))
				if err != nil {
					b.Fatal(err)
				}
				hash := sha256.New() // As the storage does.
				if _, err := index.Convert(b.Context(), io.NewSectionReader(bytes.NewReader(after), 0, int64(len(after))), previous(), scratch, io.MultiWriter(to, hash)); err != nil {
					b.Fatal(err)
				}
				_ = to.Close()
			}
		})
	}
	run("one version more", old.previous)
	run("cold", func() *index.Previous { return nil })
	b.Run("library, strictly", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := library(after); err != nil {
				b.Fatal(err)
			}
		}
	})
}
