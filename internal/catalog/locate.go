package catalog

import (
	"fmt"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// locate finds the catalogue and the module in it.
func (r *resolution) locate() *Hold {
	r.catalog = r.whichCatalog()
	r.contents = r.index.at(r.catalog)
	r.module = r.whichModule()
	if r.selection.By == ByTemplate {
		if hold := r.template(); hold != nil {
			return hold
		}
	}
	if len(r.ran) > 0 && r.installed.Module != "" && r.installed.Module != r.module {
		return &Hold{Reason: modulesv1.ModuleMismatchReason, Message: fmt.Sprintf(
			"Module %s is installed, and %s is asked for; use another installation for it", r.installed.Module, r.module)}
	}
	r.entry = r.contents.modules[r.module]
	if r.entry == nil {
		return &Hold{Reason: modulesv1.ModuleNotFoundReason, Message: r.notFound("module", r.module, (*Contents).moduleNames)}
	}
	r.note("catalog", len(r.entry.releases), string(r.catalog)+in(r.contents))
	return nil
}

// whichCatalog is the catalogue that the request names, else the one that was chosen before for this module, else the
// local one where that has the module at all: releases of two catalogues are never mixed.
func (r *resolution) whichCatalog() modulesv1.Catalog {
	if r.request.Catalog == modulesv1.CatalogLocal || r.request.Catalog == modulesv1.CatalogSystem {
		return r.request.Catalog
	}
	if r.keepsCatalog() {
		return r.installed.Catalog
	}
	local := r.index.at(modulesv1.CatalogLocal)
	if r.request.Name != "" {
		if local.shadows(r.request.Name) {
			return modulesv1.CatalogLocal
		}
		return modulesv1.CatalogSystem
	}
	if local.templates[r.request.Template] != nil {
		return modulesv1.CatalogLocal
	}
	system := r.index.at(modulesv1.CatalogSystem).templates[r.request.Template]
	if system != nil && local.shadows(system.Module) {
		return modulesv1.CatalogLocal
	}
	return modulesv1.CatalogSystem
}

// whichModule is the module that is looked for. Of a template that is not there, it is the one by which the other
// catalogue was passed over, or else the installed one: what becomes of that module may be the answer.
func (r *resolution) whichModule() string {
	if r.request.Name != "" {
		return r.request.Name
	}
	for _, catalogue := range []*Contents{r.contents, r.index.at(modulesv1.CatalogLocal), r.index.at(modulesv1.CatalogSystem)} {
		if template := catalogue.templates[r.request.Template]; template != nil {
			return template.Module
		}
	}
	return r.installed.Module
}

// keepsCatalog says whether the earlier choice of a catalogue holds. It was made for one module.
func (r *resolution) keepsCatalog() bool {
	if r.installed.Catalog != modulesv1.CatalogLocal && r.installed.Catalog != modulesv1.CatalogSystem {
		return false
	}
	if len(r.ran) > 0 {
		return true
	}
	if r.request.Name != "" {
		return r.request.Name == r.installed.Module
	}
	for _, catalog := range []modulesv1.Catalog{r.installed.Catalog, modulesv1.CatalogLocal, modulesv1.CatalogSystem} {
		if template := r.index.at(catalog).templates[r.request.Template]; template != nil {
			return template.Module == r.installed.Module
		}
	}
	return true
}

// template says why the template that the request names cannot be meant, or nothing.
func (r *resolution) template() *Hold {
	name := r.request.Template
	template := r.contents.templates[name]
	switch {
	case template == nil:
		return &Hold{Reason: modulesv1.TemplateNotFoundReason, Message: r.notFound("template", name, (*Contents).templateNames)}
	case template.Module == "":
		return &Hold{Reason: modulesv1.ModuleUnknownReason, Message: fmt.Sprintf("Template %s does not say which module it is a release of", name)}
	case r.request.Name != "" && template.Module != r.request.Name:
		return &Hold{Reason: modulesv1.ModuleMismatchReason, Message: fmt.Sprintf(
			"Template %s is a release of module %s, not of %s", name, template.Module, r.request.Name)}
	default:
		return nil
	}
}

// in says where a catalogue is.
func in(c *Contents) string {
	if c.namespace == "" {
		return ""
	}
	return " in namespace " + c.namespace
}
