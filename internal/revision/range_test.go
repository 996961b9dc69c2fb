package revision_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/revision"
)

// candidates are what every range of TestRanges chooses from, in ascending order.
var candidates = []string{
	"0.0.3", "0.0.4", "0.1.0", "0.2.3", "0.2.9", "0.3.0", "1.0.0-alpha", "1.0.0", "1.2.2", "1.2.3", "1.2.9",
	"1.3.0-rc.1", "1.3.0", "2.0.0-rc.1", "2.0.0", "2.3.5", "3.0.0-0", "3.0.0",
}

// TestRanges pins what the ranges mean, so that a new version of the library cannot move anyone's deployment.
func TestRanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   string // the candidates in the range, by spaces
	}{
		"exact":      {"A whole version means itself.", "1.2.3", "1.2.3"},
		"equal sign": {"The sign may be written.", "=1.2.3", "1.2.3"},
		"not":        {"Everything but one, prereleases excepted.", "!=1.2.3 >=1.0.0 <2.0.0", "1.0.0 1.2.2 1.2.9 1.3.0"},
		"prefix":     {"A leading v on the range's side is accepted.", "v1.2.3", "1.2.3"},
		"prefixes":   {"Behind any sign.", ">=v1.2.3 <v2.0.0", "1.2.3 1.2.9 1.3.0"},

		"caret":                {"Up to the next major version.", "^1.2.3", "1.2.3 1.2.9 1.3.0"},
		"caret short":          {"Missing parts are zero.", "^1.2", "1.2.2 1.2.3 1.2.9 1.3.0"},
		"caret major":          {"A major version alone.", "^1", "1.0.0 1.2.2 1.2.3 1.2.9 1.3.0"},
		"caret below one":      {"Before 1.0.0 the minor version is what may break.", "^0.2.3", "0.2.3 0.2.9"},
		"caret below one, 0.2": {"The same with the patch left out.", "^0.2", "0.2.3 0.2.9"},
		"caret below 0.1":      {"Before 0.1.0 every patch may break.", "^0.0.3", "0.0.3"},
		"caret 0.0":            {"All patches of 0.0.", "^0.0", "0.0.3 0.0.4"},
		"caret zero":           {"Everything before 1.0.0.", "^0", "0.0.3 0.0.4 0.1.0 0.2.3 0.2.9 0.3.0"},

		"tilde":        {"Up to the next minor version.", "~1.2.3", "1.2.3 1.2.9"},
		"tilde short":  {"All patches.", "~1.2", "1.2.2 1.2.3 1.2.9"},
		"tilde major":  {"A major version alone is all of it.", "~1", "1.0.0 1.2.2 1.2.3 1.2.9 1.3.0"},
		"tilde, Ruby":  {"Ruby's spelling means the same.", "~>1.2.3", "1.2.3 1.2.9"},
		"patch x":      {"All patches.", "1.2.x", "1.2.2 1.2.3 1.2.9"},
		"patch star":   {"Spelt with a star.", "1.2.*", "1.2.2 1.2.3 1.2.9"},
		"patch X":      {"Spelt with a capital.", "1.2.X", "1.2.2 1.2.3 1.2.9"},
		"minor x":      {"All of a major version.", "1.x", "1.0.0 1.2.2 1.2.3 1.2.9 1.3.0"},
		"short":        {"What is left out is a wildcard.", "1.2", "1.2.2 1.2.3 1.2.9"},
		"short v":      {"With the prefix as well.", "v1.2", "1.2.2 1.2.3 1.2.9"},
		"everything":   {"Every release.", "*", "0.0.3 0.0.4 0.1.0 0.2.3 0.2.9 0.3.0 1.0.0 1.2.2 1.2.3 1.2.9 1.3.0 2.0.0 2.3.5 3.0.0"},
		"everything x": {"Spelt with an x.", "x", "0.0.3 0.0.4 0.1.0 0.2.3 0.2.9 0.3.0 1.0.0 1.2.2 1.2.3 1.2.9 1.3.0 2.0.0 2.3.5 3.0.0"},

		"above":               {"Without the bound.", ">1.2.3", "1.2.9 1.3.0 2.0.0 2.3.5 3.0.0"},
		"above a short one":   {"All of 1.2 is no more than 1.2.", ">1.2", "1.3.0 2.0.0 2.3.5 3.0.0"},
		"above a major":       {"All of 1 is no more than 1.", ">1", "2.0.0 2.3.5 3.0.0"},
		"at least":            {"With the bound.", ">=2.0.0", "2.0.0 2.3.5 3.0.0"},
		"at least, turned":    {"Spelt the other way round.", "=>2.0.0", "2.0.0 2.3.5 3.0.0"},
		"below":               {"Without the bound.", "<0.2.3", "0.0.3 0.0.4 0.1.0"},
		"at most":             {"With the bound.", "<=0.2.3", "0.0.3 0.0.4 0.1.0 0.2.3"},
		"at most a short one": {"All of 0.2 is at most 0.2.", "<=0.2", "0.0.3 0.0.4 0.1.0 0.2.3 0.2.9"},
		"both, by space":      {"Both have to hold.", ">=1.2.3 <2.0.0", "1.2.3 1.2.9 1.3.0"},
		"both, by comma":      {"Both have to hold.", ">=1.2.3, <2.0.0", "1.2.3 1.2.9 1.3.0"},
		"spaces after signs":  {"They may stand apart.", ">= 1.2.3 < 2.0.0", "1.2.3 1.2.9 1.3.0"},

		"span":       {"Both ends belong to it.", "1.2.3 - 2.0.0", "1.2.3 1.2.9 1.3.0 2.0.0"},
		"span short": {"All of a short upper end belongs to it.", "1.2 - 2", "1.2.2 1.2.3 1.2.9 1.3.0 2.0.0 2.3.5"},
		"either":     {"One has to hold.", "0.1.x || 3.x", "0.1.0 3.0.0"},
		"either, tight": {
			"Spaces around the bars may be left out.", "~1.2.3||^2", "1.2.3 1.2.9 2.0.0 2.3.5",
		},

		"prereleases from zero": {
			"The dash and zero ask for prereleases.", ">=1.0.0-0",
			"1.0.0-alpha 1.0.0 1.2.2 1.2.3 1.2.9 1.3.0-rc.1 1.3.0 2.0.0-rc.1 2.0.0 2.3.5 3.0.0-0 3.0.0",
		},
		"prereleases of one": {"Of one major version, and no more.", "^1.2.3-0", "1.2.3 1.2.9 1.3.0-rc.1 1.3.0"},
		"prereleases beyond the bound": {
			"A prerelease of the upper bound is below it.", ">=1.3.0-0 <2.0.0", "1.3.0-rc.1 1.3.0 2.0.0-rc.1",
		},
		"prereleases short of the bound": {
			"Unless the bound is the lowest prerelease.", ">=1.3.0-0 <2.0.0-0", "1.3.0-rc.1 1.3.0",
		},
		"prereleases in one alternative": {
			"Each alternative has to ask for itself.", "1.3.0-rc.1 || ^2", "1.3.0-rc.1 2.0.0 2.3.5",
		},
		"prereleases anywhere": {
			"A wildcard with a dash and zero is everything.", "*-0",
			"0.0.3 0.0.4 0.1.0 0.2.3 0.2.9 0.3.0 1.0.0-alpha 1.0.0 1.2.2 1.2.3 1.2.9 1.3.0-rc.1 1.3.0 2.0.0-rc.1 2.0.0 2.3.5 3.0.0-0 3.0.0",
		},
		"nothing": {"A range may be empty.", ">2.0.0 <1.0.0", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := parseRange(t, tc.text)
			var got []string
			for _, text := range candidates {
				if in.Contains(version(t, text)) {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s %q (-want +got):\n%s", tc.reason, tc.text, diff)
			}
		})
	}
}

func TestParseRangeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "latest", "main", "1.2.3.4", "||", "1.x || ", "|| 1.x", ">", ">1 <", "1.2.3 -2.0.0", "1|2", "1.2.3-",
		"^^1", "1.x; 2.x", "18446744073709551616.x", strings.Repeat("1.x||", 32) + "1.x",
		strings.Repeat(" ", revision.MaxRangeLength) + "1",
	} {
		got, err := revision.ParseRange(text)
		if !errors.Is(err, revision.ErrInvalidRange) {
			t.Errorf("ParseRange(%q): want ErrInvalidRange, got %v", text, err)
		}
		if got.Contains(version(t, "1.0.0")) {
			t.Errorf("ParseRange(%q): what comes with the error contains versions", text)
		}
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     string
		tags   []string
		want   []string
	}{
		"highest": {
			reason: "Numbers are compared as numbers.",
			in:     "*", tags: []string{"1.9.0", "1.10.0", "1.2.0"}, want: []string{"1.10.0"},
		},
		"text is kept": {
			reason: "The tag is what upstream knows.",
			in:     "1.x", tags: []string{"v1.0.0", "v1.1.0"}, want: []string{"v1.1.0"},
		},
		"no version": {
			reason: "Tags that are no strict versions are passed over, even where the range is short.",
			in:     "*", tags: []string{"latest", "v9", "9.9", "09.0.0", "vv9.9.9", "v1.0.0"}, want: []string{"v1.0.0"},
		},
		"release before its prerelease": {
			reason: "A release is higher than what led to it.",
			in:     ">=1.0.0-0", tags: []string{"1.0.0-rc.2", "1.0.0", "1.0.0-rc.10"}, want: []string{"1.0.0"},
		},
		"tie by metadata": {
			reason: "Build metadata has no say, so that the caller has to choose.",
			in:     "1.x", tags: []string{"1.0.0+b", "1.0.0+a", "0.9.0", "v1.0.0"}, want: []string{"1.0.0+a", "1.0.0+b", "v1.0.0"},
		},
		"tie below the highest": {
			reason: "Only the highest counts.",
			in:     "*", tags: []string{"1.0.0+a", "1.0.0+b", "1.0.1"}, want: []string{"1.0.1"},
		},
		"listed twice": {
			reason: "A tag is one tag, however often it is listed.",
			in:     "*", tags: []string{"1.0.0", "1.0.0"}, want: []string{"1.0.0"},
		},
		"none": {reason: "Nothing in the range, nothing selected.", in: "2.x", tags: []string{"1.0.0"}},
		"zero": {reason: "0.0.0 is a version like any other.", in: "*", tags: []string{"0.0.0"}, want: []string{"0.0.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, parseRange(t, tc.in).Latest(tc.tags)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLatestDoesNotDependOnTheOrderGiven is a property over random sets of tags.
func TestLatestDoesNotDependOnTheOrderGiven(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	in := parseRange(t, ">=0.2.0-0")
	for range 500 {
		tags := slices.Clone(candidates)
		random.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
		tags = tags[:random.IntN(len(tags))]
		latest := in.Latest(tags)
		slices.Sort(tags)
		if diff := cmp.Diff(in.Latest(tags), latest); diff != "" {
			t.Fatalf("latest of %q (-sorted +shuffled):\n%s", tags, diff)
		}
		for _, tag := range tags {
			if v := version(t, tag); in.Contains(v) && v.Compare(version(t, latest[0])) > 0 {
				t.Fatalf("of %q, %s is higher than %s", tags, tag, latest[0])
			}
		}
	}
}

func parseRange(t *testing.T, text string) revision.Range {
	t.Helper()
	in, err := revision.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{
		"", "*", "x", "1.x", "^1.2.3", "~1.2", ">=1.0.0-0", ">=1.2.3 <2.0.0", "1.2 - 2.3", "1.x || 3.x", "v1.2.3", "||", "!=1",
		">", "1|2", "xx", "*-0", "<=01.2", "=>1", "1.2.3+b", "^1.2.3-alpha.1 ||| 2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := revision.ParseRange(text)
		if err != nil {
			if !errors.Is(err, revision.ErrInvalidRange) {
				t.Fatalf("ParseRange(%q): %v is no ErrInvalidRange", text, err)
			}
			return
		}
		for _, tag := range in.Latest(candidates) {
			if !in.Contains(version(t, tag)) {
				t.Fatalf("latest of %q is %s, which is not in it", text, tag)
			}
		}
		if len(text) > revision.MaxRangeLength {
			t.Fatalf("a range of %d bytes was accepted", len(text))
		}
	})
}
