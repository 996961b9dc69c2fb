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
		Catalog:   module.GetCatalog(),
		Channel:   module.Channel,
		Version:   module.Version,
		Range:     module.Range,
		Latest:    module.Latest,
	}
	if module.TemplateRef != nil {
		request.Template = module.TemplateRef.Name
	}
	if module.Prereleases != nil {
		request.Prereleases = *module.Prereleases
	}
	if obj.Spec.Upgrade != nil {
		request.Upgrade = *obj.Spec.Upgrade
	}
	return request
}
