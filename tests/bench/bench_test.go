package main

import (
	"archive/tar"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the worker that the bench starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-job" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

func TestBenchMeasuresBothSides(t *testing.T) {
	t.Parallel()
	const none, some = false, true
	for name, tc := range map[string]struct {
		// received and artifact say of each kind of work which ratios it has beside CPU, wall clock and memory.
		received, artifact map[string]bool
		side               string
	}{
		"git": {
			side:     "sluice : git",
			received: map[string]bool{cold: some, commit: some, noop: some, polling: some},
			artifact: map[string]bool{cold: some, commit: some, noop: none, polling: none},
		},
		"oci": {
			side:     "sluice : ",
			received: map[string]bool{pull: some, moved: some, movedWarm: some, ociNoop: some, ociPolling: some, pullExtract: some},
			artifact: map[string]bool{pull: some, moved: some, movedWarm: some, ociNoop: none, ociPolling: none, pullExtract: some},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := compare(t.Context(), &out, plan{only: name, files: 120, mib: 1, layer: 1, rounds: 2, polls: 3}); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			rows := ratios(out.String(), tc.side, slices.Collect(maps.Keys(tc.artifact)))
			for work, artifact := range tc.artifact {
				got := rows[work]
				if len(got) != 5 {
					t.Errorf("%s: ratios %q, want five\n%s", work, got, out.String())
					continue
				}
				if got[2] == "-" || (got[3] != "-") != tc.received[work] || (got[4] != "-") != artifact {
					t.Errorf("%s: memory, bytes and artifact are %q", work, got[2:])
				}
			}
		})
	}
}

// ratios are the figures in the lines of a table that compare the sides, by kind of work.
func ratios(table, side string, works []string) map[string][]string {
	rows, work := map[string][]string{}, ""
	for line := range strings.SplitSeq(table, "\n") {
		for _, name := range works {
			if strings.HasPrefix(line, name+"  ") {
				work = name
			}
		}
		if fields := strings.Fields(line); work != "" && strings.Contains(line, side) {
			rows[work] = fields[3:]
		}
	}
	return rows
}

func TestAMovedTagWithTheSameLayerBringsNoLayer(t *testing.T) {
	t.Parallel()
	s, stop, err := setUpOCI(t.Context(), t.TempDir(), plan{layer: 1, polls: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	samples := map[string][]sample{}
	if err := s.round(0, samples); err != nil {
		t.Fatal(err)
	}
	for work, least := range map[string]bool{pull: true, moved: false, movedWarm: false} {
		if received := samples[work][0].ours.received; received >= s.layer.Size != least {
			t.Errorf("%s: received %d bytes, the layer has %d", work, received, s.layer.Size)
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
