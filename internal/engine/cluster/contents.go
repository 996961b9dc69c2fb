package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// listsAtOnce is how many collections of a namespace are listed at the same time.
const listsAtOnce = 8

// Inhabitant finds an object in the namespace that would be lost with it: one that Kubernetes did not put there itself,
// and that does not go with another one. It is nil when there is none. Any error means that this is not known: a list
// that is refused, an aggregated API that is down; ErrUnavailable, or that of over, which is asked before each list, says
// that asking again may help. What kinds there are is asked afresh, as the controller. Objects of which goes says that
// they will be gone by then are left out; it may be nil.
func (c *Client) Inhabitant(
	ctx context.Context, namespace string, goes func(schema.GroupKind, *metav1.PartialObjectMetadata) bool, over func() error,
) (*Ref, error) {
	places, err := c.places()
	if err != nil {
		return nil, err
	}
	var found atomic.Pointer[Ref]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for _, place := range places {
		group.Go(func() error {
			if found.Load() != nil {
				return nil
			}
			if err := over(); err != nil {
				return err
			}
			one, err := c.inhabitant(ctx, place, namespace, goes)
			if one != nil {
				found.Store(one)
			}
			return err
		})
	}
	err = group.Wait()
	if one := found.Load(); one != nil {
		return one, nil
	}
	return nil, err
}

// inhabitant finds one in one collection.
func (c *Client) inhabitant(
	ctx context.Context, place resource, namespace string, goes func(schema.GroupKind, *metav1.PartialObjectMetadata) bool,
) (found *Ref, err error) {
	ref := Ref{GVK: place.GroupVersion().WithKind(place.kind), Namespace: namespace}
	err = c.collection(ctx, place.GroupVersionResource, ref, func(item *metav1.PartialObjectMetadata) bool {
		left := goes == nil || !goes(ref.GVK.GroupKind(), item)
		if left && item.DeletionTimestamp == nil && !kubernetesOwn(place.GroupResource(), item) && !c.goesWithOwner(item) {
			found = &Ref{GVK: ref.GVK, Namespace: namespace, Name: item.Name, UID: item.UID}
		}
		return found == nil
	})
	return found, err
}

// places are all collections of namespaces that objects can be in, in the versions that the API server prefers. What nobody
// can delete is no content, such as the metrics of a Pod.
func (c *Client) places() ([]resource, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.mapper.kinds)
	if failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		// It may be gone for good, and nobody else would know what it had.
		first := slices.SortedFunc(maps.Keys(failed.Groups), func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) })[0]
		return nil, fmt.Errorf("the server of %s does not answer", first)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: ask the API server for its kinds: %w", ErrUnavailable, err)
	}
	var all []resource
	for _, list := range lists {
		for _, one := range list.APIResources {
			if slices.Contains(one.Verbs, "delete") || slices.Contains(one.Verbs, "deletecollection") {
				of := schema.FromAPIVersionAndKind(list.GroupVersion, one.Kind)
				all = append(all, resource{of.GroupVersion().WithResource(one.Name), one.Kind, true})
			}
		}
	}
	return all, nil
}

// kubernetesOwn says that Kubernetes puts the object into a namespace by itself, or that it says no more than who does
// something just now, which is what Leases are for.
func kubernetesOwn(resource schema.GroupResource, item *metav1.PartialObjectMetadata) bool {
	switch resource {
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return item.Name == "default"
	case schema.GroupResource{Resource: "configmaps"}:
		return item.Name == "kube-root-ca.crt"
	case schema.GroupResource{Resource: "secrets"}:
		return item.Annotations["kubernetes.io/service-account.name"] == "default"
	case schema.GroupResource{Resource: "endpoints"}:
		// Their controller marks those of a Service, in older versions with the annotation alone.
		return item.Labels["endpoints.kubernetes.io/managed-by"] != "" || item.Annotations["endpoints.kubernetes.io/last-change-trigger-time"] != ""
	case schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
		schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return true
	}
	return false
}

// goesWithOwner says that another object of the namespace decides about the object, its controller: while that is there
// it counts itself, and once it is gone the object is garbage.
func (c *Client) goesWithOwner(item *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOf(item)
	if owner == nil {
		return false
	}
	namespaced, err := c.Namespaced(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return err == nil && namespaced
}
