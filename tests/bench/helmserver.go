package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing/fstest"

	"sluice.dev/sluice/internal/helm/chart"
)

// helmServer is a repository of charts as web servers serve one: an index, as Helm writes it, with an ETag and compressed, and
// packages of one of its charts. A POST to /next adds a version to that.
type helmServer struct {
	charts, versions int

	mu           sync.Mutex
	more         int // versions that were added
	body, packed []byte
	etag         string
	packages     map[string][]byte
}

// newHelmServer has so many charts of so many versions each.
func newHelmServer(charts, versions int) (*helmServer, error) {
	s := &helmServer{charts: charts, versions: versions, packages: map[string][]byte{}}
	return s, s.write()
}

// ServeHTTP implements http.Handler.
func (s *helmServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/next":
		s.more++
		if err := s.write(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		return
	}
	body := s.packages[r.URL.Path]
	if r.URL.Path == "/index.yaml" {
		w.Header().Set("ETag", s.etag)
		if r.Header.Get("If-None-Match") == s.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		body = s.packed
	}
	_, _ = w.Write(body) // Whoever reads tells.
}

// write makes the index, and the packages of the first chart.
func (s *helmServer) write() error {
	var index bytes.Buffer
	index.WriteString("apiVersion: v1\nentries:\n")
	for c := range s.charts {
		fmt.Fprintf(&index, "  %s:\n", chartOf(c))
		versions := s.versions
		if c == 0 {
			versions += s.more
		}
		for v := versions - 1; v >= 0; v-- {
			if err := s.entry(&index, c, v); err != nil {
				return err
			}
		}
	}
	index.WriteString("generated: \"2026-01-01T00:00:00Z\"\n")
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	_, _ = compressor.Write(index.Bytes()) // A buffer takes everything.
	_ = compressor.Close()
	s.body, s.packed = index.Bytes(), packed.Bytes()
	s.etag = fmt.Sprintf(`"%x"`, sha256.Sum256(s.body))
	return nil
}

func chartOf(c int) string            { return fmt.Sprintf("chart-%03d", c) }
func versionOf(v int) string          { return fmt.Sprintf("1.%d.0", v) }
func packageOf(version string) string { return "/" + chartOf(0) + "-" + version + ".tgz" }

// entry writes a version.
func (s *helmServer) entry(index *bytes.Buffer, c, v int) error {
	digest := strings.Repeat(fmt.Sprintf("%08x", c*100_000+v), 8)
	if c == 0 && v >= s.versions-1 {
		packed, err := packedChart(context.Background(), chartOf(0), versionOf(v))
		if err != nil {
			return err
		}
		s.packages[packageOf(versionOf(v))] = packed
		sum := sha256.Sum256(packed)
		digest = hex.EncodeToString(sum[:])
	}
	fmt.Fprintf(index, `  - annotations:
      category: Database
      images: |
        - name: app
          image: registry.example.com/library/%[1]s:%[2]s-debian-12-r%[3]d
        - name: exporter
          image: registry.example.com/library/%[1]s-exporter:0.%[3]d.1-debian-12-r%[3]d
      licenses: Apache-2.0
    apiVersion: v2
    appVersion: 8.%[3]d.1
    created: "2026-01-01T00:00:00.%09[3]dZ"
    dependencies:
    - name: common
      repository: oci://registry.example.com/charts
      tags:
      - common
      version: 2.x.x
    description: What %[1]s is for, in a sentence that is about as long as such sentences
      are in the indexes of others, where they are broken into lines like this one.
    digest: %[4]s
    home: https://example.com
    icon: https://example.com/%[1]s.svg
    keywords:
    - %[1]s
    - database
    - replication
    maintainers:
    - name: The people of Example
      url: https://github.com/example/charts
    name: %[1]s
    sources:
    - https://github.com/example/charts/tree/main/%[1]s
    urls:
    - %[1]s-%[2]s.tgz
    version: %[2]s
`, chartOf(c), versionOf(v), v, digest)
	return nil
}

// packedChart is a package with a template.
func packedChart(ctx context.Context, name, version string) ([]byte, error) {
	built, err := chart.Build(ctx, chart.Folder{Files: fstest.MapFS{
		"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"), Mode: 0o644},
		"templates/a.yaml": {Data: []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"), Mode: 0o644},
	}})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	err = built.Write(ctx, &packed)
	return packed.Bytes(), err
}
