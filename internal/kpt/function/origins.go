package function

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// errOrigin says that a function is to change what is not a function's to say.
var errOrigin = errors.New("says where the package comes from, which no function may change; leave it out with selectors or exclude")

// isOrigin tells whether the field says where a package, or an object, comes from.
func isOrigin(o *object, path []string) bool {
	switch {
	case len(path) > 0 && (path[0] == "upstream" || path[0] == "upstreamLock"):
		return o.resource.IsKptfile()
	case len(path) < 3 || path[0] != "metadata" || path[1] != "annotations":
		return false
	}
	return path[2] == upstreamIdentifier || strings.HasPrefix(path[2], "packages.sluice.dev/")
}

// keepsOrigin fails if an object that a function makes of this one says something else of where it comes from.
func (o *object) keepsOrigin(made *yaml.Node) error {
	now, was := texts(made, "metadata", "annotations"), texts(o.root, "metadata", "annotations")
	for _, key := range slices.Sorted(maps.Keys(merged(was, now))) {
		path := []string{"metadata", "annotations", key}
		before, there := was[key]
		after, stays := now[key]
		if isOrigin(o, path) && (there != stays || before != after) {
			return o.fail(path, errOrigin)
		}
	}
	return nil
}

// merged has the keys of both.
func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
