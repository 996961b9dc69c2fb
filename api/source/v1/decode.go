package v1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// maxReason bounds the decoder's words, in characters: they may repeat a value of any length.
const maxReason = 512

// parts are the places in an object that its parts go to.
//
// +kubebuilder:object:generate=false
type parts[Spec, Status any] struct {
	typeMeta         *metav1.TypeMeta
	objectMeta       *metav1.ObjectMeta
	spec             *Spec
	status           *Status
	undecodable      *string
	unreadableStatus *bool
}

// decodeObject decodes an object so that no value in it can fail the list that it is part of. The API server stores
// values that pass the schema and that Go cannot hold, such as an interval of 10^18 hours; an informer that fails on
// one object sees no other object of its kind any more.
//
// A spec that cannot be decoded is left empty, and undecodable says why. A status that cannot be decoded is taken to be
// unseen, and unreadableStatus says so: it is a report, and is to be replaced.
//
// O is the kind without its UnmarshalJSON; what the object held is dropped. The places are in the object.
func decodeObject[O, Spec, Status any](data []byte, object *O, into parts[Spec, Status], unseen Status) error {
	var whole, none O
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &whole); err == nil {
		*object = whole
		return nil
	}
	*object = none
	var raw struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	*into.typeMeta, *into.objectMeta = raw.TypeMeta, raw.ObjectMeta
	if err := decodePart(raw.Spec, into.spec); err != nil {
		*into.undecodable = fmt.Sprintf("spec cannot be decoded: %.*s", maxReason, err.Error())
	}
	if err := decodePart(raw.Status, into.status); err != nil {
		*into.status, *into.unreadableStatus = unseen, true
	}
	return nil
}

// decodePart leaves the target empty when the part cannot be decoded.
func decodePart[T any](data json.RawMessage, into *T) error {
	if len(data) == 0 {
		return nil
	}
	var decoded T
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &decoded); err != nil {
		return err
	}
	*into = decoded
	return nil
}
