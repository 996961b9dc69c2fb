package cluster

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Delete deletes the object of the reference's uid, which is required, in one call, and its dependents in the background.
// The version is the only resourceVersion that may be deleted; "" means any of the same uid. Gone says that it is no longer
// there; false without an error means that it is being deleted and waits for finalizers or dependents. An object with
// another uid or version is ErrChanged. An object whose kind has been deleted is gone too.
func (c *Client) Delete(ctx context.Context, ref Ref, version string) (gone bool, err error) {
	if ref.UID == "" {
		return false, c.invalid("delete", ref, "no uid is given, so that it could be somebody else's object")
	}
	answer, err := c.delete(ctx, ref, version)
	switch {
	case errors.Is(err, ErrNotFound):
		return true, nil
	case errors.Is(err, ErrNoKind):
		if c.confirmDeleted(ctx, ref.GVK.GroupKind()) == nil {
			return true, nil
		}
		return false, err
	case err != nil:
		return false, err
	}
	// What is gone is answered with a Status, what is still there with the object.
	return answer.Kind == "Status", nil
}

func (c *Client) delete(ctx context.Context, ref Ref, version string) (*metav1.PartialObjectMetadata, error) {
	segments, err := c.segments("delete", ref)
	if err != nil {
		return nil, err
	}
	if c.foresight != nil {
		live, err := c.foreseeChange(ctx, "delete", ref, Version{UID: ref.UID, ResourceVersion: version})
		if err == nil && len(live.Finalizers) == 0 {
			live.Kind = "Status"
		}
		return live, err
	}
	body := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
		Preconditions:     &metav1.Preconditions{UID: &ref.UID},
	}
	if c.dryRun {
		// A parameter is not read beside a body.
		body.DryRun = []string{metav1.DryRunAll}
	}
	if version != "" {
		body.Preconditions.ResourceVersion = &version
	}
	request := c.rest.Delete().AbsPath(segments...).SetHeader("Content-Type", runtime.ContentTypeJSON)
	answer, _, err := c.send(ctx, "delete", ref, request, body)
	return answer, err
}
