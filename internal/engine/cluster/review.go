package cluster

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MayList says whether the identity may list the resource, in all namespaces or in the given one. It may be asked of
// resources that do not exist yet.
func (c *Client) MayList(ctx context.Context, resource schema.GroupResource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: resource.Group, Resource: resource.Resource, Namespace: namespace,
		}},
	}
	ref := Ref{GVK: authorizationv1.SchemeGroupVersion.WithKind(review.Kind)}
	request := c.rest.Post().AbsPath("apis", authorizationv1.GroupName, "v1", "selfsubjectaccessreviews").
		SetHeader("Content-Type", runtime.ContentTypeJSON)
	_, err := c.ask(ctx, "create", ref, request, review, review)
	return err == nil && review.Status.Allowed, err
}

// Resource is the resource of a kind. It costs no call when the kind is known, and is ErrNoKind when it is not.
func (c *Client) Resource(gvk schema.GroupVersionKind) (schema.GroupResource, error) {
	mapping, err := c.mapping("look up", Ref{GVK: gvk})
	if err != nil {
		return schema.GroupResource{}, err
	}
	return mapping.Resource.GroupResource(), nil
}

// ServedAs is ErrNoKind when the kind is not known, or is that of another resource. What is served is looked at again then.
func (c *Client) ServedAs(gvk schema.GroupVersionKind, plural string) error {
	ref := Ref{GVK: gvk}
	mapping, err := c.mapping("look up", ref)
	if err != nil || mapping.Resource.Resource == plural {
		return err
	}
	c.mapper.doubt()
	return c.answer(ErrNoKind, "look up", ref, "the kind is that of "+mapping.Resource.GroupResource().String(), nil)
}
