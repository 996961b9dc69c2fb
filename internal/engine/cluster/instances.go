package cluster

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxExamples is how many instances are named.
const maxExamples = 5

// Instances are the objects of a kind.
type Instances struct {
	Count int
	// Examples are the first of them, at most 5.
	Examples []Ref
}

// Instances counts the objects of a kind in every served version, in all namespaces or in the given one, without those
// that are not to count; that may be nil. Any error means that the number is not known: a list that is refused, a
// version that cannot be converted, an aggregated API that is down. A kind whose CRD has been deleted has no instances;
// one that has a CRD and is not served is an error.
func (c *Client) Instances(
	ctx context.Context, kind schema.GroupKind, namespace string, without func(*metav1.PartialObjectMetadata) bool,
) (Instances, error) {
	versions, err := c.system.served(ctx, kind)
	if err != nil {
		return Instances{}, err
	}
	if len(versions) == 0 {
		return Instances{}, c.confirmDeleted(ctx, kind)
	}
	// In whatever versions it is seen, each object counts once.
	found, seen := Instances{}, map[types.UID]bool{}
	for _, version := range versions {
		ref := Ref{GVK: kind.WithVersion(version.Version)}
		if version.namespaced {
			ref.Namespace = namespace
		}
		err := c.collection(ctx, version.GroupVersionResource, ref, func(item *metav1.PartialObjectMetadata) (more bool) {
			if seen[item.UID] || without != nil && without(item) {
				return true
			}
			seen[item.UID] = true
			if found.Count++; found.Count <= maxExamples {
				found.Examples = append(found.Examples, Ref{GVK: ref.GVK, Namespace: item.Namespace, Name: item.Name, UID: item.UID})
			}
			return true
		})
		if err != nil {
			return Instances{}, err
		}
	}
	return found, nil
}

// collection calls visit for the objects of a collection until it has seen enough. One whose kind went with its CRD since
// it was found has none.
func (c *Client) collection(
	ctx context.Context, of schema.GroupVersionResource, ref Ref, visit func(*metav1.PartialObjectMetadata) (more bool),
) error {
	err := c.each(ctx, c.metadata.Resource(of).Namespace(ref.Namespace), visit)
	if err == nil {
		return nil
	}
	if err = c.explain("list", ref, err); errors.Is(err, ErrNoKind) {
		return c.confirmDeleted(ctx, ref.GVK.GroupKind())
	}
	return err
}
