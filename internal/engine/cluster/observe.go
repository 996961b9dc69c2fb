package cluster

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// observed tells the verb of each request as it leaves, retries included.
type observed struct {
	next http.RoundTripper
	tell func(verb string)
}

func (o *observed) RoundTrip(request *http.Request) (*http.Response, error) {
	o.tell(verbOf(request))
	return o.next.RoundTrip(request)
}

func verbOf(request *http.Request) string {
	switch request.Method {
	case http.MethodPatch:
		if request.Header.Get("Content-Type") == string(types.ApplyPatchType) {
			return "apply"
		}
		return "patch"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	}
	if request.URL.Query().Get("watch") == "true" {
		return "watch"
	}
	return readVerb(request.URL.Path)
}

// readVerb tells a read by its path: api/VERSION or apis/GROUP/VERSION, then namespaces/NAME where there is one, then
// RESOURCE and NAME. The API server itself may stand below a path.
func readVerb(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if root < 0 {
		return "discover"
	}
	head := root + 2
	if parts[root] == "apis" {
		head++
	}
	if len(parts) <= head {
		return "discover"
	}
	parts = parts[head:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) == 1 {
		return "list"
	}
	return "get"
}
