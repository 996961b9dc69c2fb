package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"sluice.dev/sluice/internal/archive"
)

// dear is a rule file of patterns that each try 90 bytes at every place of a name of many "a".
func dear(lines int) string {
	var spec strings.Builder
	for i := range lines {
		fmt.Fprintf(&spec, "*%s?%s%04d*\n", strings.Repeat("a", 90), strings.Repeat("a", 20), i)
	}
	return spec.String()
}

// named is a folder of empty files.
func named(count int, name func(int) string) forged {
	tree := make(forged, count)
	for i := range tree {
		tree[i] = entry(name(i))
	}
	return tree
}

func TestMatchingIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 240)
	folders := fstest.MapFS{}
	for i := range 100 {
		folders[fmt.Sprintf("%s%04d/x", long, i)] = &fstest.MapFile{}
	}
	cases := map[string]struct {
		reason string
		tree   fs.FS
		spec   string
		limit  int64
		want   error
	}{
		"Files": {
			reason: "Patterns made to be slow are given up with a name for what to change.",
			tree:   named(100, func(i int) string { return fmt.Sprintf("%s%04d", long, i) }),
			spec:   dear(500), limit: 100_000_000, want: archive.ErrLimit,
		},
		"Folders": {reason: "Folders are matched as well.", tree: folders, spec: dear(500), limit: 100_000_000, want: archive.ErrLimit},
		"Plain": {
			reason: "Patterns without wildcards cost something too.",
			tree:   named(1000, func(i int) string { return fmt.Sprintf("file-%d", i) }),
			spec:   "*\n" + strings.Repeat("x\n", 9_999), limit: 10_000_000, want: archive.ErrLimit,
		},
		"Realistic": {
			reason: "A twentieth of the default is enough for 400 patterns with wildcards and 5000 files, and so 100,000 for all of it.",
			tree:   named(5000, func(i int) string { return fmt.Sprintf("component-%04d_test.yaml", i) }),
			spec:   "*\n" + strings.Repeat("*.py[cod]\n[Dd]ebug*\n/docs/**/*.tmp?\n*_[0-9]*.log\n", 100),
			limit:  archive.DefaultMaxMatch / 20,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := archive.Limits{MaxMatch: tc.limit}
			err := archive.Write(t.Context(), io.Discard, tc.tree, rulesOf(t, fstest.MapFS{}, tc.spec), limits)
			if !errors.Is(err, tc.want) {
				t.Fatalf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "spec.ignore") || !strings.Contains(err.Error(), ".sourceignore")) {
				t.Errorf("the error does not say what to change: %v", err)
			}
		})
	}
}

// ending ends after it was asked a number of times.
type ending struct {
	context.Context
	left *atomic.Int64
}

func (e ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestMatchingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	rules, name := rulesOf(t, fstest.MapFS{}, "*\n"+dear(500)), forged{entry(strings.Repeat("a", 240))}
	asked := func(rules *archive.Rules) int64 {
		var left atomic.Int64
		left.Store(math.MaxInt64)
		check(t, archive.Write(ending{t.Context(), &left}, io.Discard, name, rules, archive.Limits{}))
		return math.MaxInt64 - left.Load()
	}
	few, many := asked(rulesOf(t, fstest.MapFS{}, "*")), asked(rules)
	if many < few+10 {
		t.Errorf("matching one name with many patterns asks the context %d times, with one pattern %d times", many, few)
	}
	var left atomic.Int64
	left.Store(many - 5)
	if err := archive.Write(ending{t.Context(), &left}, io.Discard, name, rules, archive.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("matching one name with many patterns: want %v, got %v", context.Canceled, err)
	}
}

// FuzzGlob compares single names with path.Match, which Flux's matcher uses for each.
func FuzzGlob(f *testing.F) {
	for pattern, name := range map[string]string{
		"*.py[cod]": "x.pyc", `\[*\]a`: "[x]a", "[^a-c]*é?": "dé1", `*[\]]x*`: "a]xb", `a*\*b?c`: "aa*bxc", "?": "é", "*[]-]": "a-", "*b**a?": "bxa1",
	} {
		f.Add(pattern, name)
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00\n") {
			return
		}
		if len(pattern) > 1000 || strings.ContainsAny(pattern, "/\n\r") || strings.TrimSpace(pattern) != pattern || strings.HasPrefix(pattern, "!") ||
			strings.HasPrefix(pattern, "#") || strings.HasSuffix(pattern, `\`) {
			return // Not a pattern of one name, or one that ends elsewhere.
		}
		want, err := path.Match(pattern, name)
		if got := rulesOf(t, fstest.MapFS{}, pattern).Excluded(name, false); err == nil && got != want && !strings.HasPrefix(name, ".git") {
			t.Fatalf("pattern %q, name %q: want %t, got %t", pattern, name, want, got)
		}
	})
}
