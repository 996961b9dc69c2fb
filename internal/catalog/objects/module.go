package objects

import (
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// ModuleOf is what the object says, without whom it admits.
func ModuleOf(obj *modulesv1.Module) catalog.Module {
	module := catalog.Module{Name: obj.Name, DefaultChannel: obj.Spec.DefaultChannel}
	for _, channel := range obj.Spec.Channels {
		module.Channels = append(module.Channels, catalog.Channel{
			Name: channel.Name, Version: channel.Version,
			Suspended: channel.Suspended, Message: channel.Message, OneWay: channel.OneWay,
		})
	}
	return module
}
