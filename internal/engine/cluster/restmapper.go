package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The methods of meta.RESTMapper, which watches ask.
var _ meta.RESTMapper = &mapper{}

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return find(m, func(k *known) (*meta.RESTMapping, error) { return k.RESTMapping(kind, versions...) })
}

func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return find(m, func(k *known) ([]*meta.RESTMapping, error) { return k.RESTMappings(kind, versions...) })
}

func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return find(m, func(k *known) (schema.GroupVersionKind, error) { return k.KindFor(resource) })
}

func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return find(m, func(k *known) ([]schema.GroupVersionKind, error) { return k.KindsFor(resource) })
}

func (m *mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return find(m, func(k *known) (schema.GroupVersionResource, error) { return k.ResourceFor(resource) })
}

func (m *mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return find(m, func(k *known) ([]schema.GroupVersionResource, error) { return k.ResourcesFor(resource) })
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return find(m, func(k *known) (string, error) { return k.ResourceSingularizer(resource) })
}
