package objects

import (
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// ModuleOf is what the object says, without whom it admits.
func ModuleOf(obj *modulesv1.Module) catalog.Module {
	return catalog.Module{Name: obj.Name, DefaultChannel: obj.Spec.DefaultChannel, Channels: obj.Spec.Channels}
}
