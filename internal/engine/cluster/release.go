package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Release ends a manager's part in the object as it was seen last: labels are stripped, so that it no longer counts as a
// member, and the manager's entries in managedFields, so that nobody takes its fields for managed. Everything else
// stays. It is one merge patch that holds for the uid and resourceVersion of live alone: another one is ErrChanged,
// an object that is gone ErrNotFound. A label that is not there is no error.
func (c *Client) Release(ctx context.Context, ref Ref, live metav1.Object, manager string, labels []string) error {
	if live.GetResourceVersion() == "" {
		return c.invalid("release", ref, "no resourceVersion is given, so that it could undo somebody else's change")
	}
	stripped := make(map[string]*string, len(labels))
	for _, label := range labels {
		stripped[label] = nil
	}
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(one Entry) bool { return one.Manager == manager })
	if len(others) == 0 {
		// The API server takes an empty list for a client that knows nothing of the field.
		others = []Entry{{}}
	}
	metadata := map[string]any{
		"resourceVersion": live.GetResourceVersion(), "uid": live.GetUID(), "labels": stripped, "managedFields": others,
	}
	_, err := c.patchMetadata(ctx, "release", ref, metadata, "")
	return err
}
