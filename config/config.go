// Package config has the manifests that a cluster needs to run Sluice, as they lie in its folder.
package config

import "embed"

// Manifests are the kustomizations and what they are made of. Default is the whole, sources the source plane alone, and ui the web UI.
//
//go:embed approval crd default manager policy rbac sources ui
var Manifests embed.FS
