package objects_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

// TestStatedIsWhatTheRecordSays: of what the controller reports, whoever reads status alone knows as much.
func TestStatedIsWhatTheRecordSays(t *testing.T) {
	t.Parallel()
	one := modulesv1.Release{Module: "foo", Version: "1.0.0", Namespace: "sluice-system", Template: "foo-1.0.0", Content: "sha256:1"}
	two := modulesv1.Release{Module: "foo", Version: "2.0.0", Namespace: "sluice-system", Template: "foo-2.0.0", Content: "sha256:2"}
	for name, tc := range map[string]struct {
		reason string
		status modulesv1.ModuleInstallationStatus
		data   *modulesv1.InventoryData
		plan   *catalog.Plan
	}{
		"Nothing": {"nothing was installed", modulesv1.ModuleInstallationStatus{Resolution: &modulesv1.Resolution{Module: "foo", Catalog: modulesv1.CatalogSystem}}, nil, nil},
		"Runs": {
			"a release runs",
			modulesv1.ModuleInstallationStatus{Current: &two, Previous: &one, Resolution: &modulesv1.Resolution{Module: "foo", Catalog: modulesv1.CatalogSystem}},
			&modulesv1.InventoryData{Current: &two, Previous: &one}, nil,
		},
		"Begun": {
			"another was begun",
			modulesv1.ModuleInstallationStatus{Current: &one, Attempted: &two, Pending: &modulesv1.Pending{Reason: "DowngradeBlocked"}},
			&modulesv1.InventoryData{Current: &one, Attempt: &modulesv1.Attempt{Release: two}}, nil,
		},
		"Planned": {
			"a plan waits",
			modulesv1.ModuleInstallationStatus{Current: &one, Desired: &two, Pending: &modulesv1.Pending{Reason: "AwaitingApproval", Plan: &modulesv1.Plan{Digest: "sha256:p"}}},
			&modulesv1.InventoryData{Current: &one}, &catalog.Plan{Version: "2.0.0", Content: "sha256:2", Digest: "sha256:p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "foo", UID: "u"}, Status: tc.status}
			var record *modulesv1.Inventory
			if tc.data != nil {
				tc.data.InstallationUID = "u"
				tc.data.Choice = &modulesv1.CatalogChoice{Requested: modulesv1.CatalogAuto, Module: "foo", Catalog: modulesv1.CatalogSystem}
				record = &modulesv1.Inventory{Data: *tc.data}
			}
			want := objects.InstalledOf(obj, record)
			want.Plan = tc.plan
			request, got := objects.Stated(obj)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(objects.RequestOf(obj), request); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWhatWasBegunIsApproved: the plan of an attempt that goes on stands nowhere in status.
func TestWhatWasBegunIsApproved(t *testing.T) {
	t.Parallel()
	release := catalog.Release{Template: "foo-2.0.0", Module: "foo", Version: "2.0.0", Digest: "sha256:2", Readiness: catalog.Ready}
	two := &modulesv1.Release{Module: "foo", Version: "2.0.0", Namespace: "sluice-system", Template: "foo-2.0.0", Content: "sha256:2"}
	obj := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "foo"},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: "foo", Latest: true}, Upgrade: &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual},
		},
		Status: modulesv1.ModuleInstallationStatus{
			Current:   &modulesv1.Release{Module: "foo", Version: "1.0.0", Namespace: "sluice-system", Template: "foo-1.0.0", Content: "sha256:1"},
			Attempted: two, Desired: two,
		},
	}
	index := catalog.Index{System: catalog.New("sluice-system", []catalog.Release{release}, nil)}
	resolve := func() catalog.Decision {
		request, installed := objects.Stated(obj)
		return catalog.Resolve(request, installed, index, metav1.Now().Time)
	}
	if d := resolve(); d.Target == nil || d.Target.Version != "2.0.0" {
		t.Errorf("what was begun does not go on: %+v", d.Hold)
	}
	obj.Generation = 2
	if d := resolve(); d.Hold == nil || d.Hold.Reason != modulesv1.AwaitingApprovalReason {
		t.Errorf("an edit that nobody has looked at counts as approved: %+v", d)
	}
}

// TestEditedAsksForWhatItIsToAskFor: the fields of a spec are those of a request.
func TestEditedAsksForWhatItIsToAskFor(t *testing.T) {
	t.Parallel()
	obj := &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: "foo", Range: "1.x"}, Upgrade: &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: "sha256:0"}, Suspend: true,
		},
	}
	before := objects.RequestOf(obj)
	for _, edit := range []func(*catalog.Request){
		func(*catalog.Request) {},
		func(r *catalog.Request) { r.Range, r.Channel = "", "fast" },
		func(r *catalog.Request) { r.Range, r.Template = "", "foo-1" },
		func(r *catalog.Request) { r.Range, r.Latest, r.Catalog = "", true, modulesv1.CatalogLocal },
		func(r *catalog.Request) { r.Prereleases.Policy = modulesv1.PrereleasesInclude },
		func(r *catalog.Request) { r.Upgrade = modulesv1.UpgradePolicy{MaxStep: modulesv1.StepMinor} },
		func(r *catalog.Request) { r.Range, r.Version, r.Upgrade.AllowDowngradeTo = "", "1.0.0", "1.0.0" },
	} {
		after := before
		edit(&after)
		spec := objects.Edited(obj.Spec, before, after)
		if diff := cmp.Diff(after, objects.RequestOf(&modulesv1.ModuleInstallation{ObjectMeta: obj.ObjectMeta, Spec: spec})); diff != "" || !spec.Suspend {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
