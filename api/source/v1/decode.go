package v1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// maxReason bounds the decoder's words, in characters: they may repeat a value of any length.
const maxReason = 512

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. The API server stores values
// that pass the schema and that Go cannot hold, such as an interval of 10^18 hours; an informer that fails on one
// object sees no other object of its kind any more.
//
// A spec that cannot be decoded is left empty, and Undecodable says why. A status that cannot be decoded is left out,
// and UnreadableStatus says so: it is a report, and is to be replaced.
func (in *GitRepository) UnmarshalJSON(data []byte) error {
	type plain GitRepository
	var whole plain
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &whole); err == nil {
		*in = GitRepository(whole)
		return nil
	}
	var parts struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &parts); err != nil {
		return fmt.Errorf("decode GitRepository: %w", err)
	}
	*in = GitRepository{TypeMeta: parts.TypeMeta, ObjectMeta: parts.ObjectMeta}
	if err := decodePart(parts.Spec, &in.Spec); err != nil {
		in.Undecodable = fmt.Sprintf("spec cannot be decoded: %.*s", maxReason, err.Error())
	}
	if err := decodePart(parts.Status, &in.Status); err != nil {
		in.Status, in.UnreadableStatus = GitRepositoryStatus{ObservedGeneration: -1}, true
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
