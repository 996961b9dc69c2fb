package watch

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

	prints []imprint
	// crowded says that the object has too many managers for any to be kept.
	crowded bool
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

// remember keeps of the object what is worth keeping: of its owner's manager, if that is given. Of an object whose owner
// is not here any manager may be asked for, and anybody may have made some up: a few are kept, or none at all.
func (w *Watcher) remember(object *metav1.PartialObjectMetadata, manager string) *Meta {
	remembered := &Meta{
		UID: object.UID, ResourceVersion: object.ResourceVersion, Generation: object.Generation,
		PartOf: object.Labels[w.options.Label], Deleting: object.DeletionTimestamp != nil,
	}
	own := w.own(object.ManagedFields, manager)
	if len(own) > maxManagers {
		remembered.crowded = true
		return remembered
	}
	writes := writes{entries: object.ManagedFields}
	for _, entry := range own {
		remembered.prints = append(remembered.prints, imprint{
			manager: unique.Make(strings.Clone(entry.Manager)),
			value:   w.options.Fingerprint(object, entry.Manager),
			others:  writes.others(entry),
		})
	}
	return remembered
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

// writes are the entries of an object, each of which is hashed once, however often it counts.
type writes struct {
	entries []metav1.ManagedFieldsEntry
	hashes  [][sha256.Size]byte
}

// others hashes the entries of other managers that are in another version than own.
func (w *writes) others(own *metav1.ManagedFieldsEntry) string {
	hash, some := sha256.New(), false
	for i := range w.entries {
		if entry := &w.entries[i]; entry.APIVersion == own.APIVersion || entry.Manager == own.Manager {
			continue
		}
		some = true
		sum := w.hash(i)
		_, _ = hash.Write(sum[:])
	}
	if !some {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16])
}

func (w *writes) hash(i int) [sha256.Size]byte {
	if w.hashes == nil {
		w.hashes = make([][sha256.Size]byte, len(w.entries))
	}
	if w.hashes[i] == ([sha256.Size]byte{}) {
		entry, written := &w.entries[i], ""
		if entry.Time != nil {
			written = entry.Time.UTC().Format(time.RFC3339)
		}
		w.hashes[i] = sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", entry.Manager, entry.Operation, entry.Subresource, entry.APIVersion, written))
	}
	return w.hashes[i]
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
