package cluster

import (
	"context"
	"encoding/json"
	"fmt"

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
	body, err := json.Marshal(review)
	if err != nil {
		return false, c.invalid("create", ref, err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	raw, err := c.rest.Post().AbsPath("apis", authorizationv1.GroupName, "v1", "selfsubjectaccessreviews").
		MaxRetries(maxRetries).SetHeader("Accept", runtime.ContentTypeJSON).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).Do(ctx).Raw()
	if err != nil {
		return false, c.explain("create", ref, err)
	}
	if err := json.Unmarshal(raw, review); err != nil {
		return false, c.explain("create", ref, fmt.Errorf("read the answer: %w", err))
	}
	return review.Status.Allowed, nil
}

// Resource is the resource of a kind. It costs no call when the kind is known, and is ErrNoKind when it is not.
func (c *Client) Resource(gvk schema.GroupVersionKind) (schema.GroupResource, error) {
	mapping, err := c.mapping("look up", Ref{GVK: gvk})
	if err != nil {
		return schema.GroupResource{}, err
	}
	return mapping.Resource.GroupResource(), nil
}
