// Package v1alpha1 holds the API of modules: group modules.sluice.dev, version v1alpha1.
// It declares types, defaults, condition types and reasons, and does not know how any of them is put to use.
//
// A ModuleTemplate is one release of a module, a Module says where its channels point, a ModuleInstallation asks for a
// release and keeps it healthy, and an Inventory is what the controller has to remember of one installation.
//
// What one object can check of itself is checked by the API server: with patterns, limits and rules in the schema.
//
// +kubebuilder:object:generate=true
// +groupName=modules.sluice.dev
package v1alpha1
