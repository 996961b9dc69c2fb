package cluster

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
)

// Release strips labels from the object, so that it no longer counts as a member, and leaves everything else. It is
// one merge patch that holds for the given uid (where there is one) and resourceVersion alone: another one is a
// *ChangedError, an object that is gone ErrNotFound. A label that is not there is no error.
func (c *Client) Release(ctx context.Context, ref Ref, resourceVersion string, labels []string) error {
	segments, err := c.segments("release", ref)
	if err != nil {
		return err
	}
	if resourceVersion == "" {
		return c.invalid("release", ref, "no resourceVersion is given, so that it could undo somebody else's change")
	}
	stripped := make(map[string]*string, len(labels))
	for _, label := range labels {
		stripped[label] = nil
	}
	metadata := map[string]any{"resourceVersion": resourceVersion, "labels": stripped}
	if ref.UID != "" {
		metadata["uid"] = ref.UID
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return c.invalid("release", ref, err.Error())
	}
	_, _, err = c.send(ctx, "release", ref, c.rest.Patch(types.MergePatchType).AbsPath(segments...).Body(body))
	return err
}
