package modules

import (
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// installedOf is what the record says of the installation. A record that was left by another object of the same name
// says nothing.
func installedOf(obj *modulesv1.ModuleInstallation, inventory *modulesv1.Inventory) catalog.Installed {
	if !isRecordOf(obj, inventory) {
		return catalog.Installed{}
	}
	data := &inventory.Data
	installed := catalog.Installed{Current: choiceOf(data.Current), Previous: choiceOf(data.Previous)}
	if data.Choice != nil {
		installed.Module = data.Choice.Module
		if data.Choice.Requested == obj.Spec.Module.GetCatalog() {
			installed.Catalog = catalog.Catalog(data.Choice.Catalog)
		}
	}
	if data.Current != nil && data.Current.Module != "" {
		installed.Module = data.Current.Module
	}
	return installed
}

func isRecordOf(obj *modulesv1.ModuleInstallation, inventory *modulesv1.Inventory) bool {
	return inventory != nil && inventory.Data.InstallationUID == string(obj.UID)
}

// recordedAs is the release as it is recorded, if the record is of the very content that the catalogue has.
func recordedAs(inventory *modulesv1.Inventory, namespace string, chosen *catalog.Release) *modulesv1.Release {
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

// catalogChoice is what the record keeps of where the release was found.
func catalogChoice(obj *modulesv1.ModuleInstallation, decision catalog.Decision) *modulesv1.CatalogChoice {
	if decision.Target == nil {
		return nil
	}
	return &modulesv1.CatalogChoice{
		Requested: obj.Spec.Module.GetCatalog(),
		Module:    decision.Module,
		Catalog:   modulesv1.Catalog(decision.Catalog),
		Namespace: decision.Namespace,
	}
}
