package watch

import (
	"bytes"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"sluice.dev/sluice/internal/engine/cluster"
)

// maxManagers is how many managers of an object are kept whose owner is not here.
const maxManagers = 16

// Meta is what is remembered of an object. It is shared and must not be changed.
type Meta struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// PartOf is the value of the label by which members are found; "" when the object has none.
	PartOf string
	// Deleting says that the object has a deletion timestamp.
	Deleting bool
	// Kept says that somebody keeps the object from being deleted.
	Kept bool
	// Ignored says that the object is to be left as it is.
	Ignored bool
	// Ended says that the object is a Job that has ended well, and has a time to live after that.
	Ended bool

	prints []imprint
	// crowded says that the object has too many managers for any to be kept.
	crowded bool
}

// imprint is what is remembered of one field manager's entry.
type imprint struct {
	manager unique.Handle[string]
	value   string
}

// Fingerprint is the fingerprint of the manager's fields; "" when the API server keeps none.
func (m *Meta) Fingerprint(manager string) string {
	for _, one := range m.prints {
		if one.manager.Value() == manager {
			return one.value
		}
	}
	return ""
}

// remember keeps of the object what is worth keeping: of its owner's manager, if that is given. Of an object whose owner
// is not here any manager may be asked for, and anybody may have made some up: a few are kept, or none at all.
func (w *Watcher) remember(object *metav1.PartialObjectMetadata, manager string) *Meta {
	remembered := &Meta{
		UID: object.UID, ResourceVersion: object.ResourceVersion, Generation: object.Generation,
		PartOf: object.Labels[cluster.PartOf], Deleting: object.DeletionTimestamp != nil,
		Kept: cluster.KeptBy(object) != "", Ignored: cluster.Ignored(object), Ended: ended(object.ManagedFields),
	}
	own := w.own(object.ManagedFields, manager)
	if len(own) > maxManagers {
		remembered.crowded = true
		return remembered
	}
	for _, entry := range own {
		remembered.prints = append(remembered.prints, imprint{
			manager: unique.Make(strings.Clone(entry.Manager)),
			value:   w.options.Fingerprint(object, entry.Manager),
		})
	}
	return remembered
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

// own are the entries of applied fields: the first one of the manager, or without one of each manager that may be an
// owner's, of which it stops to look for more once there are too many.
func (w *Watcher) own(entries []metav1.ManagedFieldsEntry, manager string) []*metav1.ManagedFieldsEntry {
	var own []*metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" ||
			!strings.HasPrefix(entry.Manager, w.options.ManagerPrefix) || manager != "" && entry.Manager != manager ||
			slices.ContainsFunc(own, func(known *metav1.ManagedFieldsEntry) bool { return known.Manager == entry.Manager }) {
			continue
		}
		if own = append(own, entry); len(own) > maxManagers {
			return own
		}
	}
	return own
}

// differs says whether something changed that is more than a touch.
func (m *Meta) differs(from *Meta) bool {
	return m.UID != from.UID || m.Generation != from.Generation || m.PartOf != from.PartOf || m.Deleting != from.Deleting ||
		!slices.Equal(m.prints, from.prints)
}

// newer says whether version a is known to come after b. Versions of one resource are numbers that grow (KEP-5504); of
// others nothing is known.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
