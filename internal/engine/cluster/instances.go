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

// Instances counts the objects of a kind in all namespaces and every served version, without the excluded ones, which
// are told by their uid, or by namespace and name where they have none. Any error means that the number is not known:
// a list that is refused, a version that cannot be converted, an aggregated API that is down. A kind whose CRD has been
// deleted has no instances; one that has a CRD and is not served is an error.
func (c *Client) Instances(ctx context.Context, group, kind string, exclude ...Ref) (Instances, error) {
	wanted := schema.GroupKind{Group: group, Kind: kind}
	versions, err := c.system.served(ctx, wanted)
	if err != nil {
		return Instances{}, err
	}
	if len(versions) == 0 {
		return Instances{}, c.confirmDeleted(ctx, wanted)
	}
	tally := tally{exclude: exclude, seen: map[types.UID]bool{}}
	for _, version := range versions {
		gvk := wanted.WithVersion(version.Version)
		err := c.each(ctx, c.metadata.Resource(version.GroupVersionResource), "", func(item *metav1.PartialObjectMetadata) { tally.add(gvk, item) })
		if err == nil {
			continue
		}
		if err = c.explain("list", Ref{GVK: gvk}, err); errors.Is(err, ErrNoKind) {
			// It went between the two questions.
			err = c.confirmDeleted(ctx, wanted)
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

	exclude []Ref
	seen    map[types.UID]bool
}

func (t *tally) add(gvk schema.GroupVersionKind, item *metav1.PartialObjectMetadata) {
	if t.seen[item.UID] || t.excludes(gvk.GroupKind(), item) {
		return
	}
	t.seen[item.UID] = true
	t.Count++
	if len(t.Examples) < maxExamples {
		t.Examples = append(t.Examples, Ref{GVK: gvk, Namespace: item.Namespace, Name: item.Name, UID: item.UID})
	}
}

func (t *tally) excludes(kind schema.GroupKind, item *metav1.PartialObjectMetadata) bool {
	for _, ref := range t.exclude {
		// Objects of other kinds may well have the same name.
		named := ref.GVK.GroupKind() == kind && ref.Namespace == item.Namespace && ref.Name == item.Name
		if ref.UID == item.UID || ref.UID == "" && named {
			return true
		}
	}
	return false
}
