package cluster

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind in one of the versions in which it is served.
type resource struct {
	schema.GroupVersionResource

	kind       string
	namespaced bool
}

// served asks the API server afresh in which versions it serves the kind; none when it does not. A version whose server
// does not answer is an error.
func (c *Client) served(ctx context.Context, kind schema.GroupKind) ([]resource, error) {
	versions, err := c.versions(ctx, kind)
	if err != nil {
		return nil, err
	}
	var found []resource
	for _, version := range versions {
		resources := &metav1.APIResourceList{}
		if err := c.discover(ctx, kind.WithVersion(version.Version), resources, groupSegments(version)); err != nil {
			return nil, err
		}
		for _, one := range resources.APIResources {
			if one.Kind == kind.Kind && pathable(one.Name) {
				found = append(found, resource{version.WithResource(one.Name), one.Kind, one.Namespaced})
			}
		}
	}
	return found, nil
}

// Misplaced says what ErrScope means for the object, by what the API server serves now rather than when it was last
// asked for its kinds. It is ErrNotFound when the kind has another scope in every version, and ErrNoKind when the kind
// is not served.
func (c *Client) Misplaced(ctx context.Context, ref Ref) error {
	versions, err := c.system.served(ctx, ref.GVK.GroupKind())
	if err != nil {
		return err
	}
	for _, version := range versions {
		if version.namespaced == (ref.Namespace != "") {
			c.mapper.doubt()
			return c.answer(ErrUnavailable, "look up", ref, "its kind has just got another scope", nil)
		}
	}
	if len(versions) == 0 {
		c.mapper.doubt()
		return c.answer(ErrNoKind, "look up", ref, "the API server no longer serves "+ref.GVK.GroupKind().String(), nil)
	}
	return c.answer(ErrNotFound, "look up", ref, "its kind has another scope, so that there is no such object", nil)
}

// versions are those in which the API server serves anything of the group.
func (c *Client) versions(ctx context.Context, kind schema.GroupKind) ([]schema.GroupVersion, error) {
	if kind.Group == "" {
		return []schema.GroupVersion{{Version: "v1"}}, nil
	}
	group := &metav1.APIGroup{}
	err := c.discover(ctx, kind.WithVersion(""), group, []string{"apis", kind.Group})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoKind) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions := make([]schema.GroupVersion, 0, len(group.Versions))
	for _, version := range group.Versions {
		versions = append(versions, schema.GroupVersion{Group: kind.Group, Version: version.Version})
	}
	return versions, nil
}

func (c *Client) discover(ctx context.Context, gvk schema.GroupVersionKind, into any, segments []string) error {
	ref := Ref{GVK: gvk}
	if !pathable(segments...) {
		// It is asked as the controller, of a group that somebody else has written.
		return c.invalid("look up", ref, "its group or its version cannot stand in a path")
	}
	_, err := c.ask(ctx, "look up", ref, c.rest.Get().AbsPath(segments...), nil, into)
	return err
}

// confirmDeleted is nil when the kind is not served and has no CRD either: its objects went with it. A CRD that serves
// no version, or not yet, may keep objects that nobody sees. What kinds there are is asked as the controller itself.
func (c *Client) confirmDeleted(ctx context.Context, kind schema.GroupKind) error {
	crds := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	ref := Ref{GVK: crds.WithKind("CustomResourceDefinition")}
	var names []string
	err := c.system.each(ctx, c.system.metadata.Resource(crds.WithResource("customresourcedefinitions")), func(item *metav1.PartialObjectMetadata) bool {
		// A CRD is named for its resource and its group.
		if strings.HasSuffix(item.Name, "."+kind.Group) {
			names = append(names, item.Name)
		}
		return true
	})
	if err != nil {
		return c.system.explain("list", ref, err)
	}
	for _, ref.Name = range names {
		definition, err := c.system.Get(ctx, ref)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if name, _, err := unstructured.NestedString(definition.Object, "spec", "names", "kind"); err != nil || name == kind.Kind {
			return c.answer(ErrUnavailable, "look up", Ref{GVK: kind.WithVersion("")}, "its CRD is there, but no version of it is served", err)
		}
	}
	versions, err := c.system.served(ctx, kind)
	if err != nil {
		return err
	}
	if len(versions) > 0 {
		return c.answer(ErrUnavailable, "look up", Ref{GVK: kind.WithVersion("")}, "it is served after all", nil)
	}
	return nil
}
