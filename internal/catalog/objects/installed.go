package objects

import (
	"cmp"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// InstalledOf is what the record says of the installation. A record that was left by another object of the same name
// says nothing.
func InstalledOf(obj *modulesv1.ModuleInstallation, inventory *modulesv1.Inventory) catalog.Installed {
	if !IsRecordOf(obj, inventory) {
		return catalog.Installed{}
	}
	data := &inventory.Data
	installed := catalog.Installed{Current: data.Current, Previous: data.Previous}
	if data.Attempt != nil {
		installed.Attempted = &data.Attempt.Release
	}
	if data.Choice != nil {
		installed.Module = data.Choice.Module
		if data.Choice.Requested == obj.Spec.Module.GetCatalog() {
			installed.Catalog = data.Choice.Catalog
		}
	}
	if data.Current != nil && data.Current.Module != "" {
		installed.Module = data.Current.Module
	}
	return installed
}

// IsRecordOf says whether the record was written for this very object, and not for another one of its name.
func IsRecordOf(obj *modulesv1.ModuleInstallation, inventory *modulesv1.Inventory) bool {
	return inventory != nil && inventory.Data.InstallationUID == string(obj.UID)
}

// RecordedAs is the release as it is recorded, if the record is of the very content that the catalogue has.
func RecordedAs(inventory *modulesv1.Inventory, namespace string, chosen *catalog.Release) *modulesv1.Release {
	if inventory == nil {
		return nil
	}
	candidates := []*modulesv1.Release{inventory.Data.Current}
	if inventory.Data.Attempt != nil {
		candidates = append(candidates, &inventory.Data.Attempt.Release)
	}
	for _, r := range candidates {
		if r != nil && r.Namespace == namespace && r.Template == chosen.Template && r.Version == chosen.Version &&
			chosen.Digest != "" && r.Content == chosen.Digest && r.Digest != "" {
			return r
		}
	}
	return nil
}

// CatalogChoice is what the record keeps of where the release was found.
func CatalogChoice(obj *modulesv1.ModuleInstallation, decision catalog.Decision) *modulesv1.CatalogChoice {
	if decision.Target == nil {
		return nil
	}
	return &modulesv1.CatalogChoice{
		Requested: obj.Spec.Module.GetCatalog(),
		Module:    decision.Module,
		Catalog:   decision.Catalog,
		Namespace: decision.Namespace,
	}
}

// ReleasesOf are the releases that the installation runs, has begun to run, is about to run, or may go back to.
func ReleasesOf(installation *modulesv1.ModuleInstallation) []*modulesv1.Release {
	var releases []*modulesv1.Release
	status := &installation.Status
	for _, release := range []*modulesv1.Release{status.Desired, status.Current, status.Attempted, status.Previous} {
		if release != nil && release.Template != "" {
			releases = append(releases, release)
		}
	}
	return releases
}

// ChannelOf is the channel that the installation follows; empty for none.
func ChannelOf(obj *modulesv1.ModuleInstallation) string {
	if obj.Status.Resolution == nil {
		return ""
	}
	if channel, found := strings.CutPrefix(obj.Status.Resolution.SelectedBy, string(catalog.ByChannel)+"/"); found {
		return channel
	}
	return ""
}

// SameRelease says that the two are one release.
func SameRelease(a, b *modulesv1.Release) bool {
	return a != nil && a.Template == b.Template && a.Version == b.Version && a.Content == b.Content && a.Namespace == b.Namespace
}

// Stated is what the installation asks for, and what it has as far as status says that: for whoever does not read the
// Inventory. Status repeats the Inventory's releases. It does not say which catalogue was asked for when the one that is kept was
// chosen, so that an edit of spec.module.catalog which the controller has not seen makes a difference; nor the plan of an attempt
// that goes on, which is known to be approved all the same.
func Stated(obj *modulesv1.ModuleInstallation) (catalog.Request, catalog.Installed) {
	status := &obj.Status
	request := RequestOf(obj)
	installed := catalog.Installed{Current: status.Current, Previous: status.Previous, Attempted: status.Attempted, Plan: planOf(status)}
	ran := cmp.Or(status.Current, status.Attempted)
	if ran == nil {
		return request, installed
	}
	installed.Module, installed.Catalog = ran.Module, modulesv1.CatalogSystem
	if ran.Namespace == obj.Namespace {
		installed.Catalog = modulesv1.CatalogLocal
	}
	if found := status.Resolution; found != nil {
		installed.Module, installed.Catalog = cmp.Or(ran.Module, found.Module), cmp.Or(found.Catalog, installed.Catalog)
	}
	if begun := status.Attempted; begun != nil && status.Pending == nil && SameRelease(status.Desired, begun) && status.ObservedGeneration == obj.Generation {
		// It was approved before it was begun, whatever the spec approves by now.
		installed.Plan = &catalog.Plan{Version: begun.Version, Content: begun.Content, Digest: begunPlan}
		request.Upgrade.Approve = begunPlan
	}
	return request, installed
}

// begunPlan stands for the digest of a plan that is being carried out.
const begunPlan = "begun"

// planOf is the plan that waits for an approval.
func planOf(status *modulesv1.ModuleInstallationStatus) *catalog.Plan {
	pending, desired := status.Pending, status.Desired
	if pending == nil || pending.Plan == nil || desired == nil {
		return nil
	}
	return &catalog.Plan{Version: desired.Version, Content: desired.Content, Digest: pending.Plan.Digest}
}
