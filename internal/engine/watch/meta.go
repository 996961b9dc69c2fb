package watch

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Meta is what is remembered of an object. It is shared and must not be changed.
type Meta struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// PartOf is the value of the label by which members are found; "" when the object has none.
	PartOf string
	// Deleting says that the object has a deletion timestamp.
	Deleting bool

	prints []imprint
}

// imprint is what is remembered of one field manager's entry.
type imprint struct {
	manager unique.Handle[string]
	value   string
	others  string
}

// Fingerprint is the fingerprint of the manager's fields; "" when the API server keeps none.
func (m *Meta) Fingerprint(manager string) string { return m.of(manager).value }

// Others is a hash of what other managers wrote through another version of the kind than the manager did; "" when none
// did. Such a write can drop fields of a custom resource unseen, so a change of the hash asks for an apply.
func (m *Meta) Others(manager string) string { return m.of(manager).others }

func (m *Meta) of(manager string) imprint {
	for _, one := range m.prints {
		if one.manager.Value() == manager {
			return one
		}
	}
	return imprint{}
}

// remember keeps of the object what is worth keeping.
func (w *Watcher) remember(object *metav1.PartialObjectMetadata) *Meta {
	remembered := &Meta{
		UID: object.UID, ResourceVersion: object.ResourceVersion, Generation: object.Generation,
		PartOf: object.Labels[w.options.Label], Deleting: object.DeletionTimestamp != nil,
	}
	for i := range object.ManagedFields {
		entry := &object.ManagedFields[i]
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" ||
			!strings.HasPrefix(entry.Manager, w.options.ManagerPrefix) {
			continue
		}
		remembered.prints = append(remembered.prints, imprint{
			manager: unique.Make(strings.Clone(entry.Manager)),
			value:   w.options.Fingerprint(object, entry.Manager),
			others:  others(object.ManagedFields, entry),
		})
	}
	return remembered
}

// others hashes the entries of other managers that are in another version than own.
func others(entries []metav1.ManagedFieldsEntry, own *metav1.ManagedFieldsEntry) string {
	hash, some := sha256.New(), false
	for i := range entries {
		entry := &entries[i]
		if entry.APIVersion == own.APIVersion || entry.Manager == own.Manager {
			continue
		}
		some = true
		written := ""
		if entry.Time != nil {
			written = entry.Time.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(hash, "%q %q %q %q %q\n", entry.Manager, entry.Operation, entry.Subresource, entry.APIVersion, written)
	}
	if !some {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16])
}

// differs says whether something changed that is more than a touch.
func (m *Meta) differs(from *Meta) bool {
	if m.UID != from.UID || m.Generation != from.Generation || m.PartOf != from.PartOf || m.Deleting != from.Deleting ||
		len(m.prints) != len(from.prints) {
		return true
	}
	for i := range m.prints {
		if m.prints[i] != from.prints[i] {
			return true
		}
	}
	return false
}

// newer says whether version a is known to come after b. Versions of one resource are numbers that grow (KEP-5504); of
// others nothing is known.
func newer(a, b string) bool {
	left, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	right, err := strconv.ParseUint(b, 10, 64)
	return err == nil && left > right
}
