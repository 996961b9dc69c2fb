package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestFindingsStandOnTemplates(t *testing.T) {
	t.Parallel()
	other := content("sha256:other")
	cases := map[string]struct {
		reason   string
		releases []catalog.Release
		modules  []catalog.Module
		want     map[string]string
	}{
		"nothing": {"plain releases are plain", everyone("1.0.0", "2.0.0"), nil, map[string]string{}},
		"alias": {
			"same version, same content", append(everyone("1.0.0"), in("regular", "1.0.0")), nil,
			map[string]string{"foo-1.0.0": "Alias", "foo-regular": "Alias"},
		},
		"same content": {"another version is another release", list(of("1.0.0", content("x")), of("2.0.0", content("x"))), nil, map[string]string{}},
		"conflict": {
			"the newer one has to yield", list(of("1.0.0"), of("1.0.0", named("b"), other, later(1))), nil, map[string]string{"b": "Conflict"},
		},
		"conflict of three": {
			"an alias of the older is in its right", list(of("1.0.0"), of("1.0.0", named("b"), other, later(1)), of("1.0.0", named("c"), later(2))), nil,
			map[string]string{"foo-1.0.0": "Alias", "b": "Conflict", "c": "Alias"},
		},
		"conflict of two newer": {
			"both yield, and are the same all the same",
			list(of("1.0.0"), of("1.0.0", named("b"), other, later(1)), of("1.0.0", named("c"), other, later(2))), nil,
			map[string]string{"b": "Conflict Alias", "c": "Conflict Alias"},
		},
		"tie":               {"neither is older", list(of("1.0.0"), of("1.0.0", named("b"), other)), nil, map[string]string{"foo-1.0.0": "Conflict", "b": "Conflict"}},
		"raised":            {"what counts is since when the version is stated", list(of("1.0.0", later(time.Hour)), of("1.0.0", named("b"), other)), nil, map[string]string{"foo-1.0.0": "Conflict"}},
		"metadata":          {"metadata makes no other version", list(of("1.0.0"), of("1.0.0+b", later(1))), nil, map[string]string{"foo-1.0.0+b": "Conflict"}},
		"metadata alias":    {"nor a conflict with itself", list(of("1.0.0"), of("1.0.0+b", content("sha256:1.0.0"))), nil, map[string]string{"foo-1.0.0": "Alias", "foo-1.0.0+b": "Alias"}},
		"channel against":   {"a template in a channel is no exception", list(of("1.0.0"), in("regular", "1.0.0", other, later(1))), nil, map[string]string{"foo-regular": "Conflict"}},
		"content unknown":   {"nothing is said before content is known", list(of("1.0.0"), of("1.0.0", named("b"), content(""))), nil, map[string]string{}},
		"deleting":          {"a template on its way out is not counted", list(of("1.0.0"), of("1.0.0", named("b"), other, deleting)), nil, map[string]string{}},
		"another module":    {"versions are a module's own", list(of("1.0.0"), of("1.0.0", other, bar)), nil, map[string]string{}},
		"no version":        {"it can be chosen by channel or name", list(in("regular", "1.0.0", unversioned)), nil, map[string]string{"foo-regular": "VersionUnknown"}},
		"no strict version": {"as can what is no version", list(of("v1.0.0"), of("1.0")), nil, map[string]string{"foo-v1.0.0": "VersionUnknown", "foo-1.0": "VersionUnknown"}},
		"no module":         {"it is nobody's", list(of("1.0.0", func(r *catalog.Release) { r.Module = "" })), nil, map[string]string{"foo-1.0.0": "ModuleUnknown"}},
		"two claims": {
			"both are told", list(in("fast", "1.0.0"), in("fast", "2.0.0", named("b"))), nil,
			map[string]string{"foo-fast": "ChannelConflict", "b": "ChannelConflict"},
		},
		"two claims of two modules": {"channels are a module's own", list(in("fast", "1.0.0"), in("fast", "1.0.0", bar)), nil, map[string]string{}},
		"overridden":                {"the module points elsewhere", list(in("fast", "1.0.0")), []catalog.Module{foo("fast=2.0.0")}, map[string]string{"foo-fast": "ChannelOverridden"}},
		"confirmed":                 {"the module points here", list(in("fast", "1.0.0")), []catalog.Module{foo("fast=1.0.0")}, map[string]string{}},
		"overridden, no version":    {"what has no version is pointed to by nobody", list(in("fast", "1.0.0", unversioned)), []catalog.Module{foo("fast=1.0.0")}, map[string]string{"foo-fast": "VersionUnknown ChannelOverridden"}},
		"overridden twice": {
			"the module settles the conflict", list(in("fast", "1.0.0"), in("fast", "2.0.0", named("b"))),
			[]catalog.Module{foo("fast=2.0.0")},
			map[string]string{"foo-fast": "ChannelOverridden"},
		},
		"the seed's story": {"five templates, three releases", published(), nil, map[string]string{
			"foo-1.0.0": "Alias", "foo-regular": "Alias", "foo-2.0.0": "Alias", "foo-fast": "Alias",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, releases := range [][]catalog.Release{tc.releases, reversed(tc.releases)} {
				c := catalog.New(systemNamespace, releases, tc.modules)
				got := map[string]string{}
				for _, r := range releases {
					var reasons []string
					for _, finding := range c.Findings(r.Template) {
						reasons = append(reasons, finding.Reason)
						if finding.Message == "" || strings.HasSuffix(finding.Message, ".") {
							t.Errorf("a finding is a sentence without a full stop: %+v", finding)
						}
					}
					if len(reasons) > 0 {
						got[r.Template] = strings.Join(reasons, " ")
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
	if got := catalog.New(systemNamespace, nil, nil).Findings("nobody"); got != nil {
		t.Errorf("findings on a template that is not there: %v", got)
	}
}

func reversed(releases []catalog.Release) []catalog.Release {
	back := slices.Clone(releases)
	slices.Reverse(back)
	return back
}

func TestLongListsAreCut(t *testing.T) {
	t.Parallel()
	var releases []catalog.Release
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		releases = append(releases, in("fast", "1.0.0", named(name)))
	}
	d := catalog.Resolve(channel("fast"), nothing, system(releases), now)
	if want := "a, b, c, d, e and 2 more"; d.Hold == nil || !strings.Contains(d.Hold.Message, want) {
		t.Errorf("%+v does not say %q", d.Hold, want)
	}
}

// TestWhatIsNoVersionIsTold: people see what the template says instead.
func TestWhatIsNoVersionIsTold(t *testing.T) {
	t.Parallel()
	release := of("1.0.0", unversioned)
	release.Stated = "v1"
	found := catalog.New(systemNamespace, []catalog.Release{release}, nil).Findings(release.Template)
	if len(found) != 1 || found[0].Reason != modulesv1.VersionUnknownReason || !strings.Contains(found[0].Message, `"v1"`) {
		t.Errorf("got %+v", found)
	}
}
