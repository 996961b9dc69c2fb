package function

import (
	"errors"
	"strings"
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
