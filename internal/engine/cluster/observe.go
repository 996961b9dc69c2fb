package cluster

import (
	"net/http"
	"regexp"

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
	read := reading.FindStringSubmatch(request.URL.Path)
	switch {
	case request.URL.Query().Get("watch") == "true":
		return "watch"
	case read == nil:
		return "discover"
	case read[1] == "":
		return "list"
	}
	return "get"
}

// reading is the end of a path that is no discovery: the version, the namespace where there is one, the resource, and
// the name. The API server itself may stand below a path.
var reading = regexp.MustCompile(`/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/)?[^/]+(/.+)?$`)
