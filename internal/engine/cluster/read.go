package cluster

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// pageSize is how many objects are listed in one call.
const pageSize = 500

// objectsPage is how many whole objects are listed in one call.
const objectsPage = 100

// Metadata reads an object's metadata. An object that is not there is ErrNotFound; whether its uid is the reference's
// is for the caller to see.
func (c *Client) Metadata(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	segments, err := c.segments("get", ref)
	if err != nil {
		return nil, err
	}
	if c.foresight != nil {
		whole, err := c.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		return metadataOf(whole)
	}
	answer, _, err := c.send(ctx, "get", ref, c.rest.Get().AbsPath(segments...), nil)
	return answer, err
}

// Get reads a whole object. An object that is not there is ErrNotFound; whether its uid is the reference's is for the
// caller to see.
func (c *Client) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	segments, err := c.segments("get", ref)
	if err != nil {
		return nil, err
	}
	read := func() (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{}
		if _, err := c.ask(ctx, "get", ref, c.rest.Get().AbsPath(segments...), nil, object); err != nil {
			return nil, err
		}
		return object, nil
	}
	if c.foresight != nil {
		return c.foresight.look(ref, read)
	}
	return read()
}

// Objects reads the kind's whole objects in a namespace, page by page. An error may come after some of them.
func (c *Client) Objects(ctx context.Context, gvk schema.GroupVersionKind, namespace, labelSelector string, visit func(*unstructured.Unstructured)) error {
	// A collection's path is that of an object without the name.
	segments, err := c.segments("list", Ref{GVK: gvk, Namespace: namespace, Name: "any"})
	if err != nil {
		return err
	}
	more := ""
	for {
		request := c.rest.Get().AbsPath(segments[:len(segments)-1]...).Param("labelSelector", labelSelector).Param("continue", more).
			Param("limit", strconv.Itoa(objectsPage))
		page := &unstructured.UnstructuredList{}
		if _, err := c.ask(ctx, "list", Ref{GVK: gvk, Namespace: namespace}, request, nil, page); err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if more = page.GetContinue(); more == "" {
			return nil
		}
	}
}

// each calls visit for every object of a collection, page by page, until it has seen enough. Pages that the API server
// has forgotten meanwhile are an error, for what was visited may not be all.
func (c *Client) each(ctx context.Context, from metadata.ResourceInterface, visit func(*metav1.PartialObjectMetadata) (more bool)) error {
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		page, err := from.List(limited, options)
		cancel()
		if err != nil {
			return err
		}
		for i := range page.Items {
			if !visit(&page.Items[i]) {
				return nil
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
