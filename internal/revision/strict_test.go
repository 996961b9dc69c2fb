package revision_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/revision"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with the file under testdata, line by line.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update once the change is meant:\n%s", path, diff)
	}
}

// lines are the lines of a file under testdata that are neither empty nor comments.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
}

func parse(t *testing.T, s string) revision.Version {
	t.Helper()
	version, err := revision.ParseStrict(s)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestStrictVersionsMatchGolden(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, line := range lines(t, "versions.txt") {
		version, err := revision.ParseStrict(line)
		switch {
		case err == nil:
			fmt.Fprintf(&got, "%s\n\t%d %d %d, prerelease %q, precedence %s\n", line,
				version.Major(), version.Minor(), version.Patch(), version.Prerelease(), version.Precedence())
		case !errors.Is(err, revision.ErrInvalidVersion):
			t.Errorf("%q: %v is not ErrInvalidVersion", line, err)
		default:
			fmt.Fprintf(&got, "%s\n\t%v\n", line, err)
		}
	}
	golden(t, "versions.golden", got.String())
}

func TestRangesMatchGolden(t *testing.T) {
	t.Parallel()
	var versions []revision.Version
	for _, line := range lines(t, "order.txt") {
		versions = append(versions, parse(t, line))
	}
	var got strings.Builder
	for _, line := range lines(t, "ranges.txt") {
		selected, err := revision.ParseStrictRange(line)
		if err != nil {
			if !errors.Is(err, revision.ErrInvalidRange) {
				t.Errorf("%q: %v is not ErrInvalidRange", line, err)
			}
			fmt.Fprintf(&got, "%s\n\t%v\n", line, err)
			continue
		}
		in := []string{}
		for _, version := range versions {
			if selected.Contains(version) {
				in = append(in, version.String())
			}
		}
		fmt.Fprintf(&got, "%s\n\t%s\n", line, strings.Join(in, " "))
	}
	golden(t, "ranges.golden", got.String())
}

func TestOrderIsFullPrecedence(t *testing.T) {
	t.Parallel()
	ordered := lines(t, "order.txt")
	for i, low := range ordered {
		for j, high := range ordered {
			if got, want := parse(t, low).Compare(parse(t, high)), min(1, max(-1, i-j)); got != want {
				t.Errorf("%s compared with %s: %d, want %d", low, high, got, want)
			}
		}
	}
}

func TestPrecedenceIsEqualExactlyWhenNothingOrdersTwoVersions(t *testing.T) {
	t.Parallel()
	texts := append(lines(t, "order.txt"), "1.0.0+a", "1.0.0+b", "1.0.0-rc.1+a", "2.0.0+20260101")
	for _, a := range texts {
		for _, b := range texts {
			equal := parse(t, a).Precedence() == parse(t, b).Precedence()
			if ordered := parse(t, a).Compare(parse(t, b)) != 0; equal == ordered {
				t.Errorf("%s and %s: equal texts %v, ordered %v", a, b, equal, ordered)
			}
		}
	}
}

func TestZeroStrictRangeContainsNothing(t *testing.T) {
	t.Parallel()
	if (revision.StrictRange{}).Contains(parse(t, "1.0.0")) {
		t.Error("the zero range contains 1.0.0")
	}
}

func TestStrictLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	long := "1.0.0-" + strings.Repeat("a", revision.MaxVersionLength)
	if _, err := revision.ParseStrict(long); !errors.Is(err, revision.ErrInvalidVersion) || strings.Contains(err.Error(), "aaa") {
		t.Errorf("a long version: %v; want ErrInvalidVersion without the text", err)
	}
	wide := strings.Repeat("1.x || ", revision.MaxRangeLength) + "1.x"
	if _, err := revision.ParseStrictRange(wide); !errors.Is(err, revision.ErrInvalidRange) || strings.Contains(err.Error(), "1.x") {
		t.Errorf("a long range: %v; want ErrInvalidRange without the text", err)
	}
}

func FuzzStrictRange(f *testing.F) {
	for _, seed := range []string{"1.x", ">=1.0.0 <2.0.0 || ^3.0.0-rc.1", "!=1.2.3, ~1", "=>1", "* - x", ">= 1.0.0+b"} {
		f.Add(seed, "1.0.0-rc.1")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		selected, err := revision.ParseStrictRange(text)
		if err != nil {
			if !errors.Is(err, revision.ErrInvalidRange) {
				t.Fatalf("%v is not ErrInvalidRange", err)
			}
			return
		}
		v, err := revision.ParseStrict(version)
		if err != nil {
			return
		}
		inverse, err := revision.ParseStrictRange("!=" + v.Precedence())
		if err != nil || inverse.Contains(v) {
			t.Fatalf("!=%s: %v, contains %v", v.Precedence(), err, inverse.Contains(v))
		}
		selected.Contains(v)
	})
}
