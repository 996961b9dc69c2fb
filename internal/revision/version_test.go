package revision_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/revision"
)

// strict is the pattern that https://semver.org suggests, behind the optional 'v' of tags.
var strict = regexp.MustCompile(`^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?` +
	`(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)

// ascending is the order of precedence, after the examples of https://semver.org.
var ascending = []string{
	"0.0.0-0", "0.0.0", "0.0.3", "0.1.0", "0.2.3", "0.9.0", "0.10.0",
	"1.0.0-0", "1.0.0-1", "1.0.0-9", "1.0.0-10", "1.0.0--", "1.0.0-A", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
	"1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0-0a", "2.0.0",
	"10.0.0", "18446744073709551615.0.0",
}

func TestVersionsAreStrict(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"1.2.3": true, "v1.2.3": true, "0.0.0": true, "1.0.0-alpha": true, "1.0.0-alpha.1": true, "1.0.0-0a": true,
		"1.0.0-x-y-z.--": true, "1.0.0+20130313144700": true, "1.0.0+01": true, "v1.0.0-rc.1+build.5": true,

		"": false, "v": false, "3": false, "v1": false, "1.2": false, "v1.2": false, "1.2.3.4": false,
		"01.2.3": false, "1.02.3": false, "1.2.03": false, "v01.2.3": false, "1.0.0-01": false,
		"vv1.2.3": false, "V1.2.3": false, "version1.2.3": false, "release-1.2.3": false, "-1.2.3": false, "+1.2.3": false,
		" 1.2.3": false, "1.2.3 ": false, "1.2.3\n": false, "1..3": false, ".2.3": false, "1.2.": false,
		"1.2.3-": false, "1.2.3+": false, "1.2.3-a..b": false, "1.2.3-a_b": false, "1.2.3+a+b": false, "1.2.3-ä": false,
		"1.2.x": false, "１.2.3": false, "18446744073709551616.0.0": false, "1.0.0-" + strings.Repeat("a", 251): false,
	}
	for text, want := range cases {
		got, ok := revision.ParseVersion(text)
		if ok != want {
			t.Errorf("ParseVersion(%q): want %t, got %t", text, want, ok)
		}
		if ok && got.String() != text {
			t.Errorf("ParseVersion(%q) prints as %q: a tag has to keep its text", text, got)
		}
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	versions := make([]revision.Version, 0, len(ascending))
	for _, text := range ascending {
		versions = append(versions, version(t, text))
	}
	for i, a := range versions {
		for j, b := range versions {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%s compared with %s: want %d, got %d", a, b, want, got)
			}
		}
	}
}

func TestPrecedenceIgnoresMetadataAndPrefix(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"v1.0.0", "1.0.0+a", "v1.0.0+b.1"} {
		if got := version(t, "1.0.0").Compare(version(t, text)); got != 0 {
			t.Errorf("1.0.0 compared with %s: got %d", text, got)
		}
	}
}

// TestSortingDoesNotDependOnTheOrderGiven is a property: sorting any shuffle gives the order of precedence.
func TestSortingDoesNotDependOnTheOrderGiven(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		shuffled := slices.Clone(ascending)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortFunc(shuffled, func(a, b string) int { return version(t, a).Compare(version(t, b)) })
		if diff := cmp.Diff(ascending, shuffled); diff != "" {
			t.Fatalf("sorted versions (-want +got):\n%s", diff)
		}
	}
}

func version(t *testing.T, text string) revision.Version {
	t.Helper()
	v, ok := revision.ParseVersion(text)
	if !ok {
		t.Fatalf("%q is a version", text)
	}
	return v
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{
		"", "v", "1", "1.2", "1.2.3", "v1.2.3", "vv1.2.3", "01.2.3", "1.0.0-alpha.1+build", "1.0.0-01", "1.0.0--",
		"18446744073709551615.0.0", "18446744073709551616.0.0", "1.2.3-", "1.2.3+", "1.2.3\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := revision.ParseVersion(text)
		if ok && !strict.MatchString(text) {
			t.Fatalf("%q is no semantic version", text)
		}
		// Short enough that every number in it fits.
		if !ok && len(text) < 20 && strict.MatchString(text) {
			t.Fatalf("%q is a semantic version", text)
		}
		if ok && (got.String() != text || got.Compare(got) != 0) {
			t.Fatalf("%q reads as %q", text, got)
		}
	})
}
