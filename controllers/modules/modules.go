// Package modules holds the controllers of templates and modules, which report where releases come from and where channels
// lead.
// It does not know what is installed of them.
package modules

import (
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/kernel"
)

// Shared is what both controllers work with.
type Shared struct {
	kernel.Shell

	// Offers are the catalogues that releases are chosen from.
	Offers *offers.Offers
}
