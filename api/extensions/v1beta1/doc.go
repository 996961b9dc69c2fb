// Package v1beta1 holds the API of generated artifacts: group source.extensions.fluxcd.io, version v1beta1, as Flux's
// source-watcher serves it.
// It declares types, condition reasons and labels, and does not know how any of them is put to use.
//
// +kubebuilder:object:generate=true
// +groupName=source.extensions.fluxcd.io
package v1beta1
