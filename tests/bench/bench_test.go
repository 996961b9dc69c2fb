package main

import (
	"archive/tar"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/testenv"
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

func TestServingIsMeasured(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), &out, plan{only: "serve", rounds: 1, window: time.Second}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	works := []string{servedWork(servedSizes[0]), servedWork(servedSizes[1])}
	rows := ratios(out.String(), "sluice : "+fileSide, works)
	for _, work := range works {
		if got := rows[work]; len(got) != 3 || slices.Contains(got, "-") {
			t.Errorf("%s: ratios %q, want three\n%s", work, got, out.String())
		}
	}
}

func TestModulesAreMeasured(t *testing.T) {
	t.Parallel()
	p := plan{
		only: "modules", rounds: 1, objects: 20, steady: 2, fleet: 3, shared: 2, fleetObjects: 5,
		window: 8 * time.Second, quiet: 3 * time.Second, // A loaded machine pauses for a second in the middle of work.
	}
	var out strings.Builder
	if err := compare(t.Context(), &out, p); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// The figures that depend on nothing but the program, as the table has them: calls, lists and watches.
	want := map[string]string{
		install: "20 5 5", oneOfAll: "1 0 0", edited: "2 0 0", deleted: "1 0 0", unchanged: "0 0 0", restarted: "0 5 5",
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		work, figures, found := strings.Cut(line, "  sluice  ")
		fields := strings.Fields(figures)
		if figures, wanted := want[strings.TrimSpace(work)]; found && wanted && len(fields) > 3 {
			if got := strings.Join(fields[:3], " "); got != figures {
				t.Errorf("%s: calls, lists and watches are %s, want %s", strings.TrimSpace(work), got, figures)
			}
			delete(want, strings.TrimSpace(work))
		}
	}
	if len(want) > 0 {
		t.Errorf("no figures for %v", slices.Collect(maps.Keys(want)))
	}
	if line := "2 installations from one artifact: 1 download,"; !strings.Contains(out.String(), line) {
		t.Errorf("%q is not said", line)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestRequestsAreSortedByWhomTheyAreFor(t *testing.T) {
	t.Parallel()
	request := func(verb, stage, resource, as string) testenv.Request {
		r := testenv.Request{Verb: verb, Stage: stage}
		r.User.Name, r.Object.Resource = sluiceUser, resource
		if as != "" {
			r.As = &struct {
				Name string `json:"username"`
			}{as}
		}
		return r
	}
	const complete, started = "ResponseComplete", "ResponseStarted"
	got := sorted([]testenv.Request{
		request("patch", complete, "configmaps", "tenant"), request("get", complete, "services", "tenant"),
		request("list", complete, "configmaps", "tenant"),
		request("watch", started, "configmaps", "tenant"), request("watch", complete, "configmaps", "tenant"),
		request("update", complete, "inventories", ""), request("create", complete, "events", ""), request("get", complete, "", ""),
	})
	want := tally{calls: 2, lists: 1, watches: 1, own: map[string]int{"update inventories": 1, "create events": 1, "get discovery": 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
	if got.bookkeeping() != 1 || got.others() != 2 || got.all() != 7 {
		t.Errorf("%d bookkeeping, %d others, %d in all", got.bookkeeping(), got.others(), got.all())
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

func TestADifferenceBelowTheNoiseIsNotMet(t *testing.T) {
	t.Parallel()
	for want, got := range map[verdict]verdict{
		met: judgeSpent(true, time.Millisecond, time.Millisecond), missed: judgeSpent(true, time.Second, time.Millisecond),
		unresolved: judgeSpent(true, -time.Second, time.Millisecond),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := judgeSpent(false, -time.Second, time.Millisecond); got != missed {
		t.Errorf("what is missed otherwise is %q", got)
	}
}

func TestPackagesAreMeasured(t *testing.T) {
	t.Parallel()
	for only, want := range map[string][]string{
		"packages": {"4 variants in 2 repositories", "synced warm"},
		"sets":     {"a set of 8 targets in 2 repositories, all drafts", "7 renders of 8 variants of 7 kinds", "1 variants, 1 pushes"},
	} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			p := plan{only: only, rounds: 1, window: 4 * time.Second, quiet: 2 * time.Second, packages: packagesPlan{
				variants: 4, into: 2, setTargets: 8, setInto: 2, evaluations: 10, catalogue: 3, revisions: 2, every: time.Second,
			}}
			var out strings.Builder
			if err := compare(t.Context(), &out, p); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for _, line := range want {
				if !strings.Contains(out.String(), line) {
					t.Errorf("%q is not said\n%s", line, out.String())
				}
			}
		})
	}
}

func TestTheEngineIsMeasured(t *testing.T) {
	t.Parallel()
	p := plan{
		only: "engine", files: 120, mib: 1, rounds: 1, polls: 3, steady: 2, window: 6 * time.Second, quiet: 2 * time.Second,
		engine: enginePlan{
			commits: 2, times: 2, large: 2, refs: 100, sharing: 3, sources: 6, repositories: 3, submodules: 2, watch: time.Second,
		},
	}
	var out strings.Builder
	if err := compare(t.Context(), &out, p); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// Who fetches, and how often, depends on nothing but the program.
	for work, want := range map[string]string{
		"poll without news, 10 refs, HTTP":                   "1.00 requests, 0.00 connections",
		"poll without news, 100 refs, HTTP":                  "1.00 requests, 0.00 connections",
		"poll without news, 100 refs, HTTP, whole reconcile": "0 API requests (none)",
		"3 objects on one repository, cold":                  "1 fetches (one object: 1) for 1 commits, 1 more artifacts",
		"3 objects on one repository, new commit":            "1 fetches (one object: 1) for 1 commits",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(work) + `  .*  ` + regexp.QuoteMeta(want)).MatchString(out.String()) {
			t.Errorf("%s: not %q\n%s", work, want, out.String())
		}
	}
}

// TestBenchMeasuresIndexesChartsAndGenerators: each kind of work has figures.
func TestBenchMeasuresIndexesChartsAndGenerators(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), &out, plan{only: "helm", files: 60, rounds: 1}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, work := range []string{
		indexCold, indexPoll, indexChange, "each further of 20 HelmRepositories, cold", "each of 40 charts, nothing new",
		"one of 40 charts gets a version: who wakes", "chart in a source of 5000 files, nothing new", "the same, a commit elsewhere in it",
		"generator of 100 artifacts, cold", "the same, nothing new", "the same, one file changed: 1 archive",
	} {
		if !strings.Contains(out.String(), "\n"+work+"  ") {
			t.Errorf("no row for %q:\n%s", work, out.String())
		}
	}
}

// TestBenchMeasuresBuckets: each kind of work has figures of both sides.
func TestBenchMeasuresBuckets(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), &out, plan{only: "buckets", files: 60, rounds: 1}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, work := range []string{"cold", "poll, nothing new", "one object changed", "each further of 20 Buckets, cold", "each further of 20 Buckets, poll"} {
		if !strings.Contains(out.String(), "\n"+work+"  ") {
			t.Errorf("no row for %q:\n%s", work, out.String())
		}
	}
}

// TestCommandsAreMeasured: beside kubectl's, and by what they ask for, which depends on nothing but the program.
func TestCommandsAreMeasured(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := plan{only: "commands", rounds: 1, commands: commandsPlan{listed: 12, chosen: 5, moved: 20, members: 200, streams: 3}}
	if err := compare(t.Context(), &out, p); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, row := range []string{
		`version --client  .*kubectl's wall clock`, `get mi -A, 12 objects, kubectl's cache warm  `, `get mi -A, 12 objects, cold  `, `get mi -A, 12 objects  +1 requests  +1  +met`,
		`why, 5 templates  +at most 4 requests  +[34]  +met`, `impact, 20 installations  .*4 requests`, `impact, 20 installations  +at most 250 MiB  .*  met`,
		`page of 20 installations, first content  `, `page of 20 installations  +at most 150 KB  .*  met`, `page of 20 installations, search at the server  `,
		`page of 20 installations, with its files  +at most 12 requests  .*  met`, `graph of 200 members  +at most 150 boxes  .*  met`, `graph of 200 members  +at most 200 KB  .*  met`,
		`graph of 200 members, once the page is there  `, `20 installations, 3 streams  +at most 200 MiB  .*  met`, `20 installations, 3 streams, nothing new  +0 requests in 10 s, but about rights  +0  +met`,
		`20 installations, 3 streams, told of a change  `,
	} {
		if !regexp.MustCompile(`(?m)^` + row).MatchString(out.String()) {
			t.Errorf("no row %q\n%s", row, out.String())
		}
	}
}
