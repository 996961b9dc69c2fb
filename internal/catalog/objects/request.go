package objects

import (
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// RequestOf is what the installation asks the catalogue for.
func RequestOf(obj *modulesv1.ModuleInstallation) catalog.Request {
	module := obj.Spec.Module
	request := catalog.Request{
		Namespace: obj.Namespace,
		Name:      module.Name,
		Catalog:   catalog.Catalog(module.GetCatalog()),
		Channel:   module.Channel,
		Version:   module.Version,
		Range:     module.Range,
		Latest:    module.Latest,
		Upgrade: catalog.Upgrade{
			Mode:             catalog.Mode(obj.Spec.GetUpgradeMode()),
			MaxStep:          catalog.Size(obj.Spec.GetMaxStep()),
			AllowDowngradeTo: obj.Spec.GetAllowDowngradeTo(),
			Approve:          obj.Spec.GetApprove(),
		},
	}
	if module.TemplateRef != nil {
		request.Template = module.TemplateRef.Name
	}
	switch module.GetPrereleasePolicy() {
	case modulesv1.PrereleasesInclude:
		request.Prereleases.Include = true
	case modulesv1.PrereleasesListed:
		request.Prereleases.Identifiers = module.GetPrereleaseIdentifiers()
	case modulesv1.PrereleasesExclude:
	}
	return request
}
