package archive_test

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"

	"sluice.dev/sluice/internal/archive"
)

// TestFilterIsFluxsMatcher: of the same lines, in the same order, both leave out the same paths.
func TestFilterIsFluxsMatcher(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	lines := []string{"a", "/a", "a/", "a/b", "*.x", "!b", "!a/b", "**/b", "a/**", "b/*", "!*.x", "# no", "", "/b/**/c", "c?", "!/a/"}
	names := []string{"a", "b", "c", "cc", "a.x", "b.x", "..", ""}
	some := func() string {
		var text strings.Builder
		for range chance.IntN(5) {
			text.WriteString(lines[chance.IntN(len(lines))] + "\n")
		}
		return text.String()
	}
	for range atRandom(2000) {
		file, spec := some(), some()
		var paths []string
		for range 20 {
			parts := make([]string, 1+chance.IntN(4))
			for i := range parts {
				parts[i] = names[chance.IntN(len(names))]
			}
			paths = append(paths, strings.Join(parts, "/"))
		}
		if chance.IntN(2) == 0 {
			slices.Sort(paths)
		}
		matcher := sourceignore.NewMatcher(slices.Concat(
			sourceignore.ReadPatterns(strings.NewReader(file), nil), sourceignore.ReadPatterns(strings.NewReader(spec), nil)))
		filter, err := archive.NewFilter(t.Context(), archive.Limits{}, strings.NewReader(file), nil, strings.NewReader(spec))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			want := matcher.Match(strings.Split(path, "/"), false)
			if got, err := filter.Excludes(t.Context(), path); err != nil || got != want {
				t.Fatalf("lines %q and %q, path %q: want %t, got %t, %v", file, spec, path, want, got, err)
			}
		}
	}
}

func TestFilterIsBounded(t *testing.T) {
	t.Parallel()
	for reason, lines := range map[string]string{
		"too many lines":  strings.Repeat("x\n", 10_001),
		"a line too long": strings.Repeat("x", 1<<16),
		"too many bytes":  strings.Repeat("#"+strings.Repeat("x", 1000)+"\n", 1100),
	} {
		if _, err := archive.NewFilter(t.Context(), archive.Limits{}, strings.NewReader(lines)); !errors.Is(err, archive.ErrLimit) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	filter, err := archive.NewFilter(t.Context(), archive.Limits{MaxMatch: 10_000}, strings.NewReader(dear(100)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filter.Excludes(t.Context(), "x/"+strings.Repeat("a", 240)); !errors.Is(err, archive.ErrLimit) {
		t.Errorf("dear lines: got %v", err)
	}
}

// TestEverythingIsArchived: not even version control's files are left out.
func TestEverythingIsArchived(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{".git/config": {}, "logo.png": {}, ".sourceignore": {Data: []byte("*\n")}, "a": {}}
	var packed strings.Builder
	check(t, archive.Write(t.Context(), &packed, tree, archive.Everything(), archive.Limits{}))
	opened, err := archive.Open(t.Context(), strings.NewReader(packed.String()), t.TempDir(), archive.Limits{})
	check(t, err)
	defer func() { _ = opened.Close() }()
	found := map[string]bool{}
	check(t, fs.WalkDir(opened, ".", func(path string, entry fs.DirEntry, err error) error {
		found[path] = !entry.IsDir()
		return err
	}))
	want := map[string]bool{".": false, ".git": false, ".git/config": true, "logo.png": true, ".sourceignore": true, "a": true}
	if !maps.Equal(found, want) {
		t.Errorf("got %v", found)
	}
}
