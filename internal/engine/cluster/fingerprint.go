package cluster

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fingerprintSize is how many bytes of the hash are kept: enough that nothing collides by chance.
const fingerprintSize = 16

// Fingerprint condenses what the API server records of the last apply of a manager, or of all whose names begin so: the
// object's uid and, of their entries in managedFields, the API version, the fields and the time. It changes when anybody
// changes or removes a field or a label that they applied, in every kind, also where there is no generation; it does not
// change for a status, for foreign fields, or for an apply that changes nothing. It is "" when they have applied nothing,
// or managedFields were wiped. It does not see the same manager apply other values within one second.
//
// Metadata clients and the answer to an apply give equal fingerprints; an unstructured object may order fields
// otherwise and is not to be used.
func Fingerprint(object metav1.Object, manager string) string {
	hash := sha256.New()
	part := func(text []byte) {
		// The length keeps neighbours apart.
		hash.Write(binary.AppendUvarint(nil, uint64(len(text))))
		hash.Write(text)
	}
	part([]byte(object.GetUID()))
	found := false
	for _, entry := range object.GetManagedFields() {
		if !strings.HasPrefix(entry.Manager, manager) || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		found = true
		part([]byte(entry.APIVersion))
		part(entry.FieldsV1.GetRawBytes())
		if entry.Time != nil {
			part(binary.AppendVarint(nil, entry.Time.Unix()))
		}
	}
	if !found {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:fingerprintSize])
}

// maxAdmission is by how much an entry of whoever creates an object can be older than that. A larger one is of an object
// that was restored from a backup, which says nothing of who had made it.
const maxAdmission = time.Minute

// MadeBy says that an apply of the manager provably created the object: the manager's entry in managedFields is no
// younger than the object. Times have whole seconds; where the two are equal, nobody else may have written anything but
// a subresource.
func MadeBy(object metav1.Object, manager string) bool {
	created, alone, early, first := object.GetCreationTimestamp(), true, false, false
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.Manager != manager:
			alone = alone && entry.Subresource != ""
		case entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.Time != nil:
			// Admission can take its time between the two.
			early, first = entry.Time.Before(&created) && created.Sub(entry.Time.Time) <= maxAdmission, entry.Time.Equal(&created)
		}
	}
	return early || first && alone
}
