package objects

import (
	"k8s.io/apimachinery/pkg/api/equality"

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

// Edited is the spec with the fields in which the one request differs from the other.
func Edited(spec modulesv1.ModuleInstallationSpec, before, after catalog.Request) modulesv1.ModuleInstallationSpec {
	edited := spec.DeepCopy()
	module := &edited.Module
	module.Name, module.Channel, module.Version, module.Range, module.Latest = after.Name, after.Channel, after.Version, after.Range, after.Latest
	if module.TemplateRef = nil; after.Template != "" {
		module.TemplateRef = &modulesv1.LocalReference{Name: after.Template}
	}
	if after.Catalog != before.Catalog {
		module.Catalog = after.Catalog
	}
	if !equality.Semantic.DeepEqual(after.Prereleases, before.Prereleases) {
		module.Prereleases = after.Prereleases.DeepCopy()
	}
	if after.Upgrade == before.Upgrade {
		return *edited
	}
	if edited.Upgrade == nil {
		edited.Upgrade = &modulesv1.UpgradePolicy{}
	}
	for _, field := range []struct {
		to            *string
		before, after string
	}{
		{(*string)(&edited.Upgrade.Mode), string(before.Upgrade.Mode), string(after.Upgrade.Mode)},
		{(*string)(&edited.Upgrade.MaxStep), string(before.Upgrade.MaxStep), string(after.Upgrade.MaxStep)},
		{&edited.Upgrade.AllowDowngradeTo, before.Upgrade.AllowDowngradeTo, after.Upgrade.AllowDowngradeTo},
		{&edited.Upgrade.Approve, before.Upgrade.Approve, after.Upgrade.Approve},
	} {
		if field.before != field.after {
			*field.to = field.after
		}
	}
	return *edited
}
