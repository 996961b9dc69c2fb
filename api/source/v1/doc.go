// Package v1 holds the API of the source plane: group source.toolkit.fluxcd.io, version v1, as Flux serves it.
// It declares types, defaults, condition types and reasons, and does not know how any of them is put to use.
//
// The schema is Flux's, field by field, so that its command line and its consumers work unchanged. Additions are
// additive: they are optional and live in status only.
//
// +kubebuilder:object:generate=true
// +groupName=source.toolkit.fluxcd.io
package v1
