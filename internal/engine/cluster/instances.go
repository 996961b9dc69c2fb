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
	tally := tally{without: without, seen: map[types.UID]bool{}}
	for _, version := range versions {
		ref := Ref{GVK: kind.WithVersion(version.Version)}
		if version.namespaced {
			ref.Namespace = namespace
		}
		err := c.each(ctx, c.metadata.Resource(version.GroupVersionResource).Namespace(ref.Namespace), "",
			func(item *metav1.PartialObjectMetadata) bool { return tally.add(ref.GVK, item) })
		if err == nil {
			continue
		}
		if err = c.explain("list", ref, err); errors.Is(err, ErrNoKind) {
			// It went between the two questions.
			err = c.confirmDeleted(ctx, kind)
		}
		if err != nil {
			return Instances{}, err
		}
	}
	return tally.Instances, nil
}

// tally counts each object once, in whatever versions it is seen.
type tally struct {
	Instances

	without func(*metav1.PartialObjectMetadata) bool
	seen    map[types.UID]bool
}

func (t *tally) add(gvk schema.GroupVersionKind, item *metav1.PartialObjectMetadata) (more bool) {
	if t.seen[item.UID] || t.without != nil && t.without(item) {
		return true
	}
	t.seen[item.UID] = true
	t.Count++
	if len(t.Examples) < maxExamples {
		t.Examples = append(t.Examples, Ref{GVK: gvk, Namespace: item.Namespace, Name: item.Name, UID: item.UID})
	}
	return true
}
