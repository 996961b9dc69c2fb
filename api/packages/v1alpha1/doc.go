// Package v1alpha1 holds the API of packages: group packages.sluice.dev, version v1alpha1.
// It declares types, defaults, condition types and reasons, and does not know how any of them is put to use.
//
// A Repository is a branch and folder of a Git repository that holds packages, a PackageVariant keeps a package of one
// repository alive in another, and a PackageRevision is a change that is open, or a revision that was published.
// Git is the truth: the objects are requests and reports, and can all be made again from it.
//
// What one object can check of itself is checked by the API server: with patterns, limits and rules in the schema. Who
// may approve is checked there as well, by the policy in config/approval.
//
// +kubebuilder:object:generate=true
// +groupName=packages.sluice.dev
package v1alpha1
