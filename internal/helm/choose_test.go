package helm_test

import (
	"errors"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/revision"
)

// TestChoosePinsFluxsChoice: which version a range stands for must not move with a library.
func TestChoosePinsFluxsChoice(t *testing.T) {
	t.Parallel()
	var versions []index.Version
	for day, text := range []string{
		"10.0.0-rc.1", "9.1.0", "9.0.0+b1", "9.0.0+b2", "9.0.0+b0", "v6.2.0", "1.2", "1.0.0", "0.9.0-alpha", "none",
	} {
		versions = append(versions, index.Version{
			Metadata: &chart.Metadata{Name: "app", Version: text}, Created: time.Unix(int64(day%4), 0),
		})
	}
	cases := map[string]struct {
		reason string
		want   string
		err    error
	}{
		"":              {"nothing stands for the newest release", "9.1.0", nil},
		"*":             {"and so does a star", "9.1.0", nil},
		"9.0.0+b1":      {"an exact text wins, with its build metadata", "9.0.0+b1", nil},
		"10.0.0-rc.1":   {"and so does a prerelease", "10.0.0-rc.1", nil},
		"none":          {"even what is no version", "none", nil},
		"9.0.0":         {"of such as differ in build metadata, the one that was created last", "9.0.0+b2", nil},
		"6.x":           {"a leading v is kept", "v6.2.0", nil},
		"6.2.0":         {"and tolerated", "v6.2.0", nil},
		"~1.2":          {"short versions take part", "1.2", nil},
		">=1.0.0 <2":    {"the highest in the range", "1.2", nil},
		">9.1.0":        {"a prerelease is none of a range that names none", "", helm.ErrNoVersion},
		">=10.0.0-0":    {"and is of one that does", "10.0.0-rc.1", nil},
		"<0.5.0":        {"nothing in the range", "", helm.ErrNoVersion},
		"not a version": {"no range at all", "", revision.ErrInvalidRange},
	}
	for wanted, tc := range cases {
		t.Run(wanted, func(t *testing.T) {
			t.Parallel()
			got, err := helm.Choose(versions, wanted)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s: want error %v, got %v", tc.reason, tc.err, err)
			}
			if err == nil && got.Version != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got.Version)
			}
		})
	}
	if _, err := helm.Choose(nil, "*"); !errors.Is(err, helm.ErrNoVersion) {
		t.Errorf("of no versions: got %v", err)
	}
}
