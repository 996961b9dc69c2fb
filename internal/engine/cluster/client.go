package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// acceptMetadata asks for an object's metadata alone; a server that cannot do so answers with the whole object, which
// begins alike.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// maxRetries bounds how often a busy API server is asked again: whoever waits here does nothing else.
const maxRetries = 2

// Client reads and writes objects as one identity. It is safe for concurrent use. Its errors wrap one of this
// package's, and their texts are fit for conditions.
type Client struct {
	identity Identity
	timeout  time.Duration
	mapper   *mapper
	rest     rest.Interface
	metadata metadata.Interface
	wire     *http.Client
	// system is the controller's own client: what kinds there are is nobody's content.
	system *Client
	// dryRun says that nothing is stored of what is written.
	dryRun bool
	// foresight has a client send no writes; nil has it send them.
	foresight *foresight
}

// Namespaced says whether objects of the kind live in namespaces. It costs no call when the kind is known, and is
// ErrNoKind when it is not.
func (c *Client) Namespaced(gvk schema.GroupVersionKind) (bool, error) {
	mapping, err := c.mapping("look up", Ref{GVK: gvk})
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Preferred is the reference in the version of its kind that the API server would rather serve, for one that it does not
// serve any more; the same one when it serves none, or that is not known.
func (c *Client) Preferred(ref Ref) Ref {
	if mapping, err := c.mapper.RESTMapping(ref.GVK.GroupKind()); err == nil {
		ref.GVK = mapping.GroupVersionKind
	}
	return ref
}

func (c *Client) mapping(verb string, ref Ref) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(ref.GVK.GroupKind(), ref.GVK.Version)
	if meta.IsNoMatchError(err) {
		detail := fmt.Sprintf("the API server does not serve %s in version %s, or not yet", ref.GVK.GroupKind(), ref.GVK.Version)
		return nil, c.answer(ErrNoKind, verb, ref, detail, nil)
	}
	if err != nil {
		return nil, c.explain(verb, ref, err)
	}
	return mapping, nil
}

// segments are the parts of an object's path. A reference that does not fit its kind's scope is ErrScope, and one that
// would lead to another path ErrInvalid.
func (c *Client) segments(verb string, ref Ref) ([]string, error) {
	mapping, err := c.mapping(verb, ref)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case ref.Name == "":
		return nil, c.invalid(verb, ref, "it has no name")
	case !pathable(ref.Name, ref.Namespace):
		return nil, c.invalid(verb, ref, "its name or its namespace cannot stand in a path")
	case namespaced && ref.Namespace == "":
		return nil, c.answer(ErrScope, verb, ref, "the kind lives in namespaces, and the object names none", nil)
	case !namespaced && ref.Namespace != "":
		return nil, c.answer(ErrScope, verb, ref, "the kind lives outside namespaces, and the object names one", nil)
	}
	segments := groupSegments(mapping.Resource.GroupVersion())
	if namespaced {
		segments = append(segments, "namespaces", ref.Namespace)
	}
	return append(segments, mapping.Resource.Resource, ref.Name), nil
}

// pathable says that each of the segments stays one segment of a path.
func pathable(segments ...string) bool {
	return !slices.ContainsFunc(segments, func(segment string) bool { return len(content.IsPathSegmentName(segment)) > 0 })
}

func groupSegments(version schema.GroupVersion) []string {
	if version.Group == "" {
		return []string{"api", version.Version}
	}
	return []string{"apis", version.Group, version.Version}
}

func (c *Client) invalid(verb string, ref Ref, detail string) error {
	return c.answer(ErrInvalid, verb, ref, detail, nil)
}

// send sends a request for one object and reads the metadata that it is answered with. An API server that is busy is
// asked again when it says so, maxRetries times.
func (c *Client) send(ctx context.Context, verb string, ref Ref, request *rest.Request, body any) (*metav1.PartialObjectMetadata, int, error) {
	answer := &metav1.PartialObjectMetadata{}
	status, err := c.ask(ctx, verb, ref, request.SetHeader("Accept", acceptMetadata), body, answer)
	if err != nil {
		return nil, status, err
	}
	return answer, status, nil
}

// ask sends a request, with a body if there is one, and reads the answer, as JSON.
func (c *Client) ask(ctx context.Context, verb string, ref Ref, request *rest.Request, body, answer any) (status int, err error) {
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, c.invalid(verb, ref, err.Error())
		}
		request.Body(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	result := request.MaxRetries(maxRetries).Do(ctx).StatusCode(&status)
	if err := result.Error(); err != nil {
		return status, c.explain(verb, ref, err)
	}
	raw, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(raw, answer)
	}
	if err != nil {
		return status, c.explain(verb, ref, fmt.Errorf("read the answer: %w", err))
	}
	return status, nil
}

func refOf(object *unstructured.Unstructured) Ref {
	return Ref{GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}
}
