// Package decode reads objects from the API server so that no value in one can fail the list that it is part of. The API
// server stores values that pass the schema and that Go cannot hold, such as an interval of 10^18 hours; an informer that
// fails on one object sees no other object of its kind any more.
// It does not know any kind.
package decode

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// maxReason bounds the decoder's words, in characters: they may repeat a value of any length.
const maxReason = 512

// Part is a field of an object that is decoded by itself when the object as a whole cannot be.
type Part struct {
	name string
	read func(json.RawMessage)
}

// Spec is the field of the name. If it cannot be decoded, it is left empty, and undecodable says why.
func Spec[T any](name string, into *T, undecodable *string) Part {
	return Part{name: name, read: func(data json.RawMessage) {
		if err := read(data, into); err != nil {
			*undecodable = fmt.Sprintf("%s cannot be decoded: %.*s", name, maxReason, err.Error())
		}
	}}
}

// Status is the object's status. If it cannot be decoded, it is taken to be unseen, and unreadable says so: it is a
// report, and is to be replaced.
func Status[T any](into *T, unseen T, unreadable *bool) Part {
	return Part{name: "status", read: func(data json.RawMessage) {
		if err := read(data, into); err != nil {
			*into, *unreadable = unseen, true
		}
	}}
}

// Object decodes an object, and replaces all that it held. O is the kind without its UnmarshalJSON; what follows
// are places in the object. The error is about the header, or about JSON: without a name there is no object to report to.
func Object[O any](data []byte, object *O, kind *metav1.TypeMeta, header *metav1.ObjectMeta, parts ...Part) error {
	var whole, none O
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &whole); err == nil {
		*object = whole
		return nil
	}
	*object = none
	var raw struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	*kind, *header = raw.TypeMeta, raw.ObjectMeta
	var fields map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	for _, part := range parts {
		part.read(fields[part.name])
	}
	return nil
}

// read leaves the target empty when the part cannot be decoded.
func read[T any](data json.RawMessage, into *T) error {
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
