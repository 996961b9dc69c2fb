package v1alpha1

import "sluice.dev/sluice/api/decode"

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. Data that cannot be decoded is
// left empty, with the reason in Undecodable.
func (in *Inventory) UnmarshalJSON(data []byte) error {
	type plain Inventory
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("data", &in.Data, &in.Undecodable))
}
