package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/revision"
)

func TestEdits(t *testing.T) {
	t.Parallel()
	plain := system(everyone("1.0.0", "1.1.0", "2.0.0"))
	for name, tc := range map[string]struct {
		reason    string
		request   catalog.Request
		installed catalog.Installed
		index     catalog.Index
		version   string
		want      []catalog.Edit
		hold      string
	}{
		"Channel": {
			"what is in a channel alone is got by that", within(">=1.0.0 <2.0.0"), runs("1.0.0"), system(append(everyone("1.0.0"), in("fast", "2.2.0"))), "2.2.0",
			[]catalog.Edit{{Request: channel("fast")}},
			"",
		},
		"Range": {
			"the range can be wider, other ways change more", within("1.x"), runs("1.1.0"), plain, "2.0.0",
			[]catalog.Edit{{Request: within("1.x || ^2.0.0")}, {Request: within("1.x || 2.0.0")}, {Request: version("2.0.0")}, {Request: latest()}},
			"",
		},
		"RangeBelow": {
			"following never goes back", within("1.x"), runs("1.1.0"), plain, "1.0.0",
			[]catalog.Edit{{Request: version("1.0.0", allow("1.0.0"))}},
			"",
		},
		"Step": {
			"the smallest step that is enough", latest(step(modulesv1.StepPatch)), runs("1.0.0"), system(everyone("1.0.0", "1.1.0")), "1.1.0",
			[]catalog.Edit{{Request: latest(step(modulesv1.StepMinor))}, {Request: version("1.1.0", step(modulesv1.StepMinor))}},
			"",
		},
		"Prerelease": {
			"its identifier is let in", latest(), runs("1.0.0"), system(everyone("1.0.0", "1.1.0-rc.1", "1.1.0-rc.2")), "1.1.0-rc.2",
			[]catalog.Edit{{Request: latest(prereleases("rc"))}, {Request: version("1.1.0-rc.2")}},
			"",
		},
		"Approve": {
			"a plan that is there can be approved", channel("fast", mode(modulesv1.UpgradeManual)), runs("1.0.0", planned("2.0.0", "plan")), system(append(everyone("1.0.0"), in("fast", "2.0.0"))), "2.0.0",
			[]catalog.Edit{{Request: channel("fast", mode(modulesv1.UpgradeManual), approve("plan"))}, {Request: channel("fast", mode(modulesv1.UpgradeAutomatic))}},
			"",
		},
		"Waits": {
			"a plan that is not there yet has to be approved later", version("1.0.0", mode(modulesv1.UpgradeManual)), runs("1.0.0"), plain, "1.1.0",
			[]catalog.Edit{
				{Request: version("1.1.0", mode(modulesv1.UpgradeManual)), Waits: true},
				{Request: version("1.1.0", mode(modulesv1.UpgradeAutomatic))},
			},
			"",
		},
		"Catalog": {
			"the other catalogue has it", version("1.0.0"), runs("1.0.0"), both(everyone("3.0.0"), everyone("1.0.0")), "3.0.0",
			[]catalog.Edit{{Request: version("3.0.0", from(modulesv1.CatalogLocal))}, {Request: latest(from(modulesv1.CatalogLocal))}},
			"",
		},
		"Template": {
			"a template without a module's name in the request", template("foo-1.0.0"), runs("1.0.0"), plain, "1.1.0",
			[]catalog.Edit{{Request: version("1.1.0")}},
			"",
		},
		"LastResort": {
			"where two claim one channel, the template's name leads", channel("stable"), runs("1.0.0"),
			system(append(everyone("1.0.0"), in("fast", "2.0.0"), in("fast", "2.1.0", named("foo-other")))), "2.1.0",
			[]catalog.Edit{{Request: template("foo-other", func(r *catalog.Request) { r.Name = "foo" })}},
			"",
		},
		"Unreadable":   {"a range that cannot be read is replaced", within("1.2"), runs("1.0.0"), plain, "1.1.0", []catalog.Edit{{Request: version("1.1.0")}}, ""},
		"Withdrawn":    {"nothing leads to what is withdrawn", latest(), runs("1.0.0"), system(list(of("1.0.0"), of("2.0.0", withdrawn))), "2.0.0", nil, modulesv1.ReleaseWithdrawnReason},
		"NotReady":     {"nothing leads to what cannot be had", latest(), runs("1.0.0"), system(list(of("1.0.0"), of("2.0.0", broken))), "2.0.0", nil, modulesv1.ReleaseNotReadyReason},
		"NotThere":     {"nothing leads to what does not exist", latest(), runs("1.0.0"), plain, "9.0.0", nil, ""},
		"AlreadyThere": {"nothing has to be edited", latest(), runs("1.0.0"), plain, "2.0.0", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edits, hold := catalog.Edits(tc.request, tc.installed, tc.index, now, tc.version)
			if diff := cmp.Diff(tc.want, edits); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := holdReason(hold); got != tc.hold {
				t.Errorf("%s: held by %q, want %q", tc.reason, got, tc.hold)
			}
		})
	}
}

func holdReason(hold *catalog.Hold) string {
	if hold == nil {
		return ""
	}
	return hold.Reason
}

// leadsTo says whether the request, in the place of the world's own, leads to the version, or waits for an approval of it.
func (w *world) leadsTo(request catalog.Request, version string, approval bool) bool {
	installed := w.installed
	if request.Catalog != w.request.Catalog {
		installed.Catalog = ""
	}
	d := catalog.Resolve(request, installed, w.index(), now)
	chosen := d.Target
	if approval && d.Hold != nil && d.Hold.Reason == modulesv1.AwaitingApprovalReason {
		chosen = d.Hold.Candidate
	}
	if chosen == nil {
		return false
	}
	got, err := revision.ParseStrict(chosen.Version)
	want, wrong := revision.ParseStrict(version)
	return err == nil && wrong == nil && got.Compare(want) == 0
}

// withoutOne are the requests that have one change less.
func withoutOne(before, after catalog.Request) []catalog.Request {
	var all []catalog.Request
	for _, revert := range []func(*catalog.Request){
		func(r *catalog.Request) { r.Catalog = before.Catalog },
		func(r *catalog.Request) { r.Prereleases = before.Prereleases },
		func(r *catalog.Request) { r.Upgrade.Mode = before.Upgrade.Mode },
		func(r *catalog.Request) { r.Upgrade.MaxStep = before.Upgrade.MaxStep },
		func(r *catalog.Request) { r.Upgrade.AllowDowngradeTo = before.Upgrade.AllowDowngradeTo },
		func(r *catalog.Request) { r.Upgrade.Approve = before.Upgrade.Approve },
	} {
		if less := edit(after, revert); !cmp.Equal(less, after) {
			all = append(all, less)
		}
	}
	return all
}

// TestEveryEditLeadsThere: and with one change less it would not.
func TestEveryEditLeadsThere(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		version := pick(w, someVersions)
		edits, hold := catalog.Edits(w.request, w.installed, w.index(), now, version)
		if hold != nil && len(edits) > 0 {
			t.Errorf("%s: there are edits, and a hold: %+v", version, hold)
		}
		for _, e := range edits {
			if !w.leadsTo(e.Request, version, e.Waits) || e.Waits && w.leadsTo(e.Request, version, false) || cmp.Equal(e.Request, w.request) {
				t.Errorf("%s: %+v does not lead there from %+v", version, e, w.request)
			}
			for _, less := range withoutOne(w.request, e.Request) {
				if w.leadsTo(less, version, e.Waits) {
					t.Errorf("%s: %+v changes more than %+v", version, e.Request, less)
				}
			}
		}
		return len(edits) > 0
	})
}

// TestNoEditIsThereOnlyWhereNoneLeads: selecting the version with all consents is in vain then.
func TestNoEditIsThereOnlyWhereNoneLeads(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		version := pick(w, someVersions)
		edits, _ := catalog.Edits(w.request, w.installed, w.index(), now, version)
		if len(edits) > 0 || w.request.Name == "" || w.leadsTo(w.request, version, false) {
			return false
		}
		pinned := catalog.Request{
			Namespace: w.request.Namespace, Name: "foo", Catalog: w.request.Catalog, Version: version, Upgrade: modulesv1.UpgradePolicy{AllowDowngradeTo: version},
		}
		if w.leadsTo(pinned, version, false) {
			t.Errorf("%s: %+v leads there from %+v", version, pinned, w.request)
		}
		return true
	})
}
