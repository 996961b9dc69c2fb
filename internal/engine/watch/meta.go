package watch

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"sluice.dev/sluice/internal/engine/cluster"
)

// Meta is what is remembered of an object. It is shared and must not be changed.
type Meta struct {
	cluster.Seen

	// PartOf is the value of the label by which members are found; "" when the object has none.
	PartOf string
	// Ignored says that the object is to be left as it is.
	Ignored bool
	// Ended says that the object is a Job that has ended well, and has a time to live after that.
	Ended bool
}

// remember keeps of the object what is worth keeping.
func remember(object *metav1.PartialObjectMetadata) *Meta {
	return &Meta{
		Seen: cluster.See(object), PartOf: object.Labels[cluster.PartOf],
		Ignored: cluster.Ignored(object), Ended: ended(object.ManagedFields),
	}
}

// ended reads from what the managers of a Job have set that it has ended well, and has a time to live.
func ended(entries []metav1.ManagedFieldsEntry) bool {
	complete, mortal := false, false
	for i := range entries {
		fields := entries[i].FieldsV1
		if fields == nil {
			continue
		}
		complete = complete || entries[i].Subresource == "status" && bytes.Contains(fields.GetRawBytes(), []byte(`"f:completionTime"`))
		mortal = mortal || entries[i].Subresource == "" && bytes.Contains(fields.GetRawBytes(), []byte(`"f:ttlSecondsAfterFinished"`))
	}
	return complete && mortal
}

// differs says whether something changed that is more than a touch.
func (m *Meta) differs(from *Meta) bool {
	return m.UID != from.UID || m.Generation != from.Generation || m.PartOf != from.PartOf || m.Deleting != from.Deleting ||
		m.Fingerprint != from.Fingerprint
}

// newer says whether version a is known to come after b. Versions of one resource are numbers that grow (KEP-5504); of
// others nothing is known.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
