package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// ModuleOf is what the object says. Whom it admits depends on the labels of namespaces, which are asked for where that is
// so; a namespace without labels to be had is not admitted. A module that cannot be decoded admits nobody. Whoever does not
// ask whom it admits needs no labels.
func ModuleOf(obj *modulesv1.Module, labelsOf func(namespace string) (labels.Set, bool)) catalog.Module {
	module := catalog.Module{Name: obj.Name, DefaultChannel: obj.Spec.DefaultChannel, Channels: obj.Spec.Channels}
	switch consumers := obj.Spec.Consumers; {
	case obj.Undecodable != "":
		module.Admits = func(string) bool { return false }
	case consumers != nil:
		selector, err := metav1.LabelSelectorAsSelector(&consumers.NamespaceSelector)
		if err != nil {
			selector = labels.Nothing() // The module's status tells.
		}
		module.Admits = func(namespace string) bool {
			if selector.Empty() {
				return true
			}
			has, known := labelsOf(namespace)
			return known && selector.Matches(has)
		}
	}
	return module
}
