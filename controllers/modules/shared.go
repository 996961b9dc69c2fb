// Package modules holds the controllers of the module kinds: the catalogues that releases are chosen from, what
// templates and modules report of themselves, and the installations.
// It does not know how a release is chosen, nor how one is put into the cluster.
package modules

import "sluice.dev/sluice/internal/kernel"

// Shared is what all controllers of modules work with.
type Shared struct {
	kernel.Shell

	// Catalogue is where releases are chosen from.
	Catalogue *Catalogue
}
