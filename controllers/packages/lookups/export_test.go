package lookups

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Seen is what is kept of an object's spec and status.
func Seen(allowed Allowed, gvk schema.GroupVersionKind, object map[string]any) (map[string]any, error) {
	return allowed[gvk].of(object)
}

// Kept is what is kept of an object of which nothing but the metadata may be seen.
func Kept(object runtime.Object) *Object { return (&feed{}).kept(object) }
