package pkgrepo

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/printable"
)

func TestNamesThatAreNotSafeAreRefused(t *testing.T) {
	t.Parallel()
	for path, good := range map[string]bool{
		"web": true, "infra/web": true, "a.b-c_d": true, "größe": true, "web+1": true, "@": true, "a/b/c/d/e": true,
		"": false, "/web": false, "web/": false, "a//b": false, ".": false, "..": false, "a/../b": false, ".git": false, "a/.git/b": false,
		"git~1": false, "-web": false, "web.": false, "web.lock": false, "a..b": false, "a@{b": false, "a b": false, "a\tb": false,
		"a\nb": false, "a\x7fb": false, "a\u200db": false, "a\xffb": false, "a:b": false, "a^": false, "a?": false, "a*": false,
		"a[b": false, `a\b`: false, "a\u202eb": false,
		strings.Repeat("a", maxPartBytes): true, strings.Repeat("a", maxPartBytes+1): false, strings.Repeat("a/", maxPathBytes/2) + "b": false,
	} {
		if err := CheckPath(path); (err == nil) != good || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if err := CheckWorkspace("a/b"); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

func TestNamesOfRevisions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"v1": 1, "v20": 20, "v2147483647": math.MaxInt32, "3": 3, "v2147483648": 0, "v0": 0, "v01": 0, "v-1": 0, "v": 0, "": 0, "v1.0.0": 0, "1e3": 0,
	} {
		if got := parseNumber(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
	for name, good := range map[string]bool{"v1": true, "1": false, "v1.2.0": true, "1.2.0": true, "v1.2": false, "nightly": false, "v1.0.0-rc.1+b": true, "v0": false} {
		if _, _, ok := parseName(name); ok != good {
			t.Errorf("%q: %t", name, ok)
		}
	}
}

func TestRefsAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		branch, directory, ref string
		want                   place
		ok                     bool
	}{
		"Draft":                  {"main", "", "refs/heads/drafts/a/ws", place{Draft, "a", "ws"}, true},
		"Nested":                 {"main", "", "refs/heads/proposed/a/b/ws", place{Proposed, "a/b", "ws"}, true},
		"Mark":                   {"main", "", "refs/heads/deletionProposed/a/v3", place{DeletionProposed, "a", "v3"}, true},
		"Tag":                    {"main", "", "refs/tags/a/b/v3", place{Published, "a/b", "v3"}, true},
		"In the directory":       {"main", "x/y", "refs/heads/drafts/x/y/a/ws", place{Draft, "a", "ws"}, true},
		"In another directory":   {"main", "x/y", "refs/heads/drafts/x/a/ws", place{}, false},
		"Beside the directory":   {"main", "x/y", "refs/heads/drafts/x/yz/a/ws", place{}, false},
		"The directory itself":   {"main", "x/y", "refs/heads/drafts/x/y/ws", place{}, false},
		"No workspace":           {"main", "", "refs/heads/drafts/a", place{}, false},
		"No package":             {"main", "", "refs/tags/v3", place{}, false},
		"The branch itself":      {"drafts/a/b", "", "refs/heads/drafts/a/b", place{}, false},
		"Another branch":         {"main", "", "refs/heads/feature/a/b", place{}, false},
		"A pull request":         {"main", "", "refs/pull/drafts/a/b", place{}, false},
		"A path that misleads":   {"main", "", "refs/heads/drafts/a\u202e/ws", place{}, false},
		"A workspace that does":  {"main", "", "refs/heads/drafts/a/w\u202es", place{}, false},
		"Bytes that are no text": {"main", "", "refs/heads/drafts/\xff/ws", place{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := newLayout(tc.branch, tc.directory)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := l.parse(tc.ref)
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%+v, %t", got, ok)
			}
			if ok && l.ref(got) != tc.ref {
				t.Errorf("written as %s", l.ref(got))
			}
		})
	}
}

func FuzzRefs(f *testing.F) {
	for _, seed := range []string{"refs/heads/drafts/a/b", "refs/tags/x/a/v1", "refs/heads/deletionProposed/x/a/b/v1.2.0", "refs/heads/proposed//", "refs/tags/\xff/v1"} {
		f.Add(seed, "x")
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, ref, directory string) {
		l, err := newLayout("main", directory)
		if err != nil {
			return
		}
		p, ok := l.parse(ref)
		if ok && l.ref(p) != ref {
			t.Errorf("%q is written as %q", ref, l.ref(p))
		}
		if ok && (CheckPath(p.pkg) != nil || CheckWorkspace(p.name) != nil) {
			t.Errorf("%q is not safe: %+v", ref, p)
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add("subject", "body", "ns/name", "a/b", "ws")
	f.Add("a\n\nSluice-Package: x", "Sluice-Change: y\n\n", "x\nSluice-Revision: v9", "a", "w")
	f.Add("", "\r\n\x00\xff", "\u2028", "a", "w")
	f.Fuzz(func(t *testing.T, subject, body, value, path, workspace string) {
		if CheckPath(path) != nil || CheckWorkspace(workspace) != nil {
			return
		}
		m := Message{Subject: subject, Body: body, Variant: value, Upstream: value, Config: value}
		text := m.text("otherwise", trailer{packageTrailer, path}, trailer{revisionTrailer, "v3"}, trailer{workspaceTrailer, workspace}, trailer{changeTrailer, "abc"})
		want := note{pkg: path, workspace: workspace, revision: "v3", change: "abc", variant: strings.TrimSpace(printable.Line(value, maxTrailerBytes))}
		if diff := cmp.Diff(want, parseNote(text+porchLine(path, workspace)), cmp.AllowUnexported(note{})); diff != "" {
			t.Error(diff)
		}
		first, _, _ := strings.Cut(text, "\n")
		if strings.TrimSpace(first) == "" {
			t.Errorf("no subject in %q", text)
		}
	})
}

func FuzzNotes(f *testing.F) {
	f.Add("Publish a v1\n\nSluice-Package: a\nSluice-Revision: v1\nkpt:{\"package\":\"a\"}\n")
	f.Add("kpt:{")
	f.Add("\n\n\n")
	f.Fuzz(func(_ *testing.T, message string) { parseNote(message) })
}

func TestTiesAreBrokenByBuildMetadata(t *testing.T) {
	t.Parallel()
	ordered := []string{"1.0.0", "v1.0.0", "1.0.0+build.2", "1.0.0+build.10", "v1.0.0+build.10", "1.0.0+build.10.1", "1.0.0+c"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := compareTies(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
}

// TestRevisionsAreComparedAsTheyAreSorted, and no number with a version.
func TestRevisionsAreComparedAsTheyAreSorted(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"v1", "v2"}: -1, {"v10", "v2"}: 1, {"v1.2.0", "v1.10.0"}: -1, {"v1.0.0-rc.1", "v1.0.0"}: -1, {"v1.0.0+2", "v1.0.0+10"}: -1, {"v3", "v3"}: 0,
	} {
		if order, ok := CompareRevisions(pair[0], pair[1]); order != want || !ok {
			t.Errorf("%v are ordered %d, %v", pair, order, ok)
		}
	}
	for _, pair := range [][2]string{{"v1", "v1.0.0"}, {"latest", "v1"}, {"main", "next"}} {
		if _, ok := CompareRevisions(pair[0], pair[1]); ok {
			t.Errorf("%v are ordered", pair)
		}
	}
}
