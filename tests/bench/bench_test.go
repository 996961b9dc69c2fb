package main

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the worker that the bench starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-work" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

func TestBenchMeasuresBothSides(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), &out, plan{files: 120, mib: 1, rounds: 2, polls: 3}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	rows := map[string][]string{}
	work := ""
	for line := range strings.SplitSeq(out.String(), "\n") {
		for _, name := range []string{cold, commit, noop, polling} {
			if strings.HasPrefix(line, name+"  ") {
				work = name
			}
		}
		if fields := strings.Fields(line); work != "" && strings.Contains(line, "sluice : git") {
			rows[work] = fields[3:]
		}
	}
	for work, artifact := range map[string]bool{cold: true, commit: true, noop: false, polling: false} {
		ratios := rows[work]
		if len(ratios) != 5 {
			t.Errorf("%s: ratios %q, want five\n%s", work, ratios, out.String())
			continue
		}
		if (ratios[4] != "-") != artifact {
			t.Errorf("%s: ratio of the artifacts is %q", work, ratios[4])
		}
		if ratios[2] == "-" || ratios[3] == "-" {
			t.Errorf("%s: memory and bytes are %q, want figures", work, ratios[2:4])
		}
	}
}

func TestArtifactsThatDifferAreNoComparison(t *testing.T) {
	t.Parallel()
	write := func(files ...string) string {
		path := filepath.Join(t.TempDir(), "artifact.tar.gz")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		zipped := gzip.NewWriter(file)
		archive := tar.NewWriter(zipped)
		for i := 0; i < len(files); i += 2 {
			header := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write([]byte(files[i+1])); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []interface{ Close() error }{archive, zipped, file} {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	cases := map[string]struct {
		reason       string
		ours, theirs string
		want         string
	}{
		"Same":    {"Names and contents are the same.", write("a", "1", "b", "2"), write("b", "2", "a", "1"), ""},
		"Content": {"A content differs.", write("a", "1"), write("a", "2"), `"a" differs`},
		"Missing": {"We lack a file.", write("a", "1"), write("a", "1", "b", "2"), `"b" differs`},
		"More":    {"We have a file too many.", write("a", "1", "b", "2"), write("a", "1"), "2 and 1 files"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := sameFiles(tc.ours, tc.theirs)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestEachFigureHasItsOwnMedian(t *testing.T) {
	t.Parallel()
	samples := []sample{
		{ours: usage{cpu: 3 * time.Second, peak: 10}},
		{ours: usage{cpu: time.Second, peak: 30}},
		{ours: usage{cpu: 2 * time.Second, peak: 20}},
		{ours: usage{cpu: 4 * time.Second, peak: 40}},
	}
	got := medians(samples, func(s sample) usage { return s.ours })
	if want := (usage{cpu: 2500 * time.Millisecond, peak: 25}); got != want {
		t.Errorf("medians %+v, want %+v", got, want)
	}
}
