package oci

import (
	"math/rand/v2"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

func TestNewestTag(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		ref    sourcev1.OCIRepositoryRef
		media  string
		tags   []string
		want   string
	}{
		"Highest":    {"by precedence, not by spelling", sourcev1.OCIRepositoryRef{SemVer: "*"}, "", []string{"1.9.0", "1.10.0", "1.2.0", "latest", "20240115", "1.11"}, "1.10.0"},
		"Range":      {"what is out of the range has no say", sourcev1.OCIRepositoryRef{SemVer: "1.x"}, "", []string{"2.0.0", "1.0.0", "1.1.0-rc.1"}, "1.0.0"},
		"Equal":      {"of equal versions, the last in lexical order", sourcev1.OCIRepositoryRef{SemVer: "1.x"}, "", []string{"1.0.0", "v1.0.0", "0.9.0"}, "v1.0.0"},
		"Repeated":   {"a tag may come twice", sourcev1.OCIRepositoryRef{SemVer: "1.x"}, "", []string{"1.0.0", "1.0.0"}, "1.0.0"},
		"Filter":     {"a filter takes out", sourcev1.OCIRepositoryRef{SemVer: "1.x", SemverFilter: "^v"}, "", []string{"1.5.0", "v1.0.0"}, "v1.0.0"},
		"Charts":     {"an underscore stands for build metadata", sourcev1.OCIRepositoryRef{SemVer: "1.x"}, helmChart, []string{"1.0.0", "1.0.0_2", "1.0.0_10"}, "1.0.0_2"},
		"Underscore": {"and nowhere else", sourcev1.OCIRepositoryRef{SemVer: "1.x"}, "", []string{"1.0.0", "1.1.0_2"}, "1.0.0"},
		"None":       {"nothing fits", sourcev1.OCIRepositoryRef{SemVer: "3.x"}, "", []string{"1.0.0", "2.0.0"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := parseReference(&tc.ref, tc.media)
			if err != nil {
				t.Fatal(err)
			}
			order := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				order.Shuffle(len(tc.tags), func(i, j int) { tc.tags[i], tc.tags[j] = tc.tags[j], tc.tags[i] })
				best := newest{among: want}
				for _, tag := range tc.tags {
					best.see(tag)
				}
				if best.tag != tc.want || best.seen != len(tc.tags) {
					t.Fatalf("%s: of %q it is %q, want %q; saw %d", tc.reason, tc.tags, best.tag, tc.want, best.seen)
				}
			}
		})
	}
}
