package ui

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// counted is what the test looks at of a row.
func counted(row moduleRow) (all []string) {
	for _, cell := range row.Cells {
		all = append(all, fmt.Sprint(cell.Leads, cell.Has, cell.Coming, cell.Held))
	}
	return all
}

// TestModule: who has a release, who is on the way to it and who is held counts in the channel that is followed, and in all.
func TestModule(t *testing.T) {
	t.Parallel()
	day := time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC)
	old := catalog.Release{Template: "foo-1", Version: "1.0.0", Support: catalog.Support{State: modulesv1.SupportSupported, Until: day}}
	newer := catalog.Release{Template: "foo-2", Version: "2.0.0"}
	one, two, lost := ModuleRelease{"foo-1", "1.0.0"}, ModuleRelease{"foo-2", "2.0.0"}, ModuleRelease{"foo-0", "0.1.0"}
	module := &Module{
		Namespace: "system", Name: "foo", Read: true, Releases: []catalog.Release{newer, old},
		Channels: []catalog.ChannelStatus{{Channel: modulesv1.Channel{Name: "fast", Version: "2.0.0"}, Release: &newer}},
		Users: []ModuleUser{
			{Name: "a", Channel: "fast", Has: two},
			{Name: "b", Channel: "fast", Has: one, Gets: two},
			{Name: "c", Channel: "fast", Has: one, Gets: two, Waits: "AwaitingApproval"},
			{Name: "d", Has: lost},
			{Name: "e", Channel: "gone", Has: one, Waits: "ChannelNotFound"},
			{Name: "f", Has: lost, Left: true},
		},
	}
	made := moduled{Module: module, Path: "/x"}
	made.sum(day, url.Values{})
	want := map[string][]string{
		"foo-2": {"true 1 1 1", "false 0 0 0", "false 0 0 0", "false 1 1 1"},
		"foo-1": {"false 2 0 0", "false 1 0 0", "false 0 0 0", "false 3 0 0"},
		"foo-0": {"false 0 0 0", "false 0 0 0", "false 2 0 0", "false 2 0 0"},
	}
	got := map[string][]string{}
	for _, row := range made.Rows {
		got[row.Template] = counted(row)
		if row.Gone != (row.Template == "foo-0") {
			t.Errorf("%s: gone is %t", row.Template, row.Gone)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if made.All != (tally{2, 1, 2}) || made.Choose != 5 || made.Left != 1 || made.Channels[0].tally != (tally{1, 1, 1}) || made.Channels[1].tally != (tally{0, 0, 1}) || made.Channels[1].Reason != modulesv1.ChannelNotFoundReason {
		t.Errorf("all %v, channels %+v", made.All, made.Channels)
	}
	if row := made.Rows[1]; row.State != modulesv1.SupportDeprecated || row.LastDay() != "2030-05-31" {
		t.Errorf("on the day after its last one, %s is %s, until %s", row.Template, row.State, row.LastDay())
	}
	for asked, want := range map[string]string{
		"": "bcefad", "channel=fast": "bca", "channel=none": "fd", "template=foo-2&version=2.0.0": "bca", "template=foo-1&version=1.0.0&channel=gone": "e", "template=foo-2&version=9.9.9": "",
	} {
		values, err := url.ParseQuery(asked)
		if err != nil {
			t.Fatal(err)
		}
		made.users(values)
		names := ""
		for _, user := range made.Users {
			names += user.Name
		}
		if names != want || (made.Shown == "") != (asked == "") {
			t.Errorf("%q has %s, and says %q", asked, names, made.Shown)
		}
	}
}

// TestModuleIsBounded: what somebody has stays longest, and the others are counted.
func TestModuleIsBounded(t *testing.T) {
	t.Parallel()
	module := &Module{Read: true}
	for i := range 300 {
		module.Releases = append(module.Releases, catalog.Release{Template: fmt.Sprint("t", i), Version: fmt.Sprintf("%d.0.0", 300-i)})
		module.Channels = append(module.Channels, catalog.ChannelStatus{Channel: modulesv1.Channel{Name: fmt.Sprint("c", i)}})
		module.Users = append(module.Users, ModuleUser{Name: fmt.Sprint("u", i)})
	}
	module.Users[0].Has = ModuleRelease{"t299", "1.0.0"}
	made := moduled{Module: module}
	made.sum(time.Time{}, url.Values{})
	if len(made.Rows) != maxModuleRows || made.MoreRows != 200 || made.Rows[0].Template != "t0" || made.Rows[maxModuleRows-1].Template != "t299" {
		t.Errorf("%d rows and %d more, from %s to %s", len(made.Rows), made.MoreRows, made.Rows[0].Template, made.Rows[len(made.Rows)-1].Template)
	}
	if len(made.Columns) != maxModuleColumns || made.MoreColumns != 292 || len(made.Channels) != maxModuleRows || made.MoreChannels != 200 || len(made.Users) != maxModuleRows || made.MoreUsers != 200 {
		t.Errorf("%d columns and %d more, %d channels and %d more, %d users and %d more",
			len(made.Columns), made.MoreColumns, len(made.Channels), made.MoreChannels, len(made.Users), made.MoreUsers)
	}
}

// TestAReleaseWhoseContentChangesIsOnTheWay: who has it, and gets it anew, does not have two of them.
func TestAReleaseWhoseContentChangesIsOnTheWay(t *testing.T) {
	t.Parallel()
	one := ModuleRelease{"foo-1", "1.0.0"}
	made := moduled{Module: &Module{Read: true, Releases: []catalog.Release{{Template: "foo-1", Version: "1.0.0"}}, Users: []ModuleUser{{Name: "a", Has: one, Gets: one}}}}
	made.sum(time.Time{}, url.Values{})
	if diff := cmp.Diff([]string{"false 1 1 0", "false 1 1 0"}, counted(made.Rows[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAModulesPageFollowsWhatItCounts: an installation that goes its way, waits or is suspended changes the page, as does one that still
// has a release of it; what else is reported of them does not.
func TestAModulesPageFollowsWhatItCounts(t *testing.T) {
	t.Parallel()
	u := pagesOfKind(t, installationKind, "installations")
	kind := &u.index.kinds[0]
	kind.Columns = []Column{{Title: moduleTitle, Value: func(obj *unstructured.Unstructured) string {
		name, _, _ := unstructured.NestedString(obj.Object, "status", "resolution", "module")
		return name
	}}}
	now := u.lookOfModule(&login{Person: &Person{Reader: still{}}}, "system", "foo").now
	store, last := &rows{index: u.index, kind: *kind}, ""
	for i, step := range []struct {
		spec, status string
		changes      bool
	}{
		{`{}`, `{"resolution": {"module": "foo"}}`, true},
		{`{}`, `{"resolution": {"module": "foo"}, "desired": {"template": "foo-1"}}`, true},
		{`{}`, `{"resolution": {"module": "foo"}, "desired": {"template": "foo-1"}, "conditions": [{"type": "Ready"}]}`, false},
		{`{"suspend": true}`, `{"resolution": {"module": "foo"}, "desired": {"template": "foo-1"}}`, true},
		{`{}`, `{"resolution": {"module": "foo"}, "desired": {"template": "foo-1"}, "pending": {"reason": "AwaitingApproval"}}`, true},
		{`{}`, `{"resolution": {"module": "foo"}, "desired": {"template": "foo-1"}, "pending": {"reason": "UpgradesNever"}}`, true},
		{`{}`, `{"resolution": {"module": "bar"}, "current": {"module": "foo", "template": "foo-1"}}`, true},
		{`{}`, `{"resolution": {"module": "bar"}, "current": {"module": "foo", "template": "foo-2"}}`, true},
		{`{}`, `{"resolution": {"module": "bar"}, "current": {"module": "bar", "template": "bar-1"}}`, true},
		{`{}`, `{"resolution": {"module": "bar"}, "current": {"module": "bar", "template": "bar-2"}}`, false},
	} {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "g/v1", "kind": %q, "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "%d"}, "spec": %s, "status": %s}`, installationKind, i, step.spec, step.status)); err != nil {
			t.Fatal(err)
		}
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
		if is := now(t.Context()).Whole; (is != last) != step.changes {
			t.Errorf("step %d: the page changes: %t", i, is != last)
		} else {
			last = is
		}
	}
}
