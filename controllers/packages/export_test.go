package packages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/kernel"
)

// Spread is what came of one spreading of variants.
type Spread struct{ Made, Changed, Gone, Unwanted, Problems int }

// SpreadOnce makes the variants of a set what is wanted, given those that are there.
func SpreadOnce(
	ctx context.Context, c client.Client, obj *packagesv1.PackageVariantSet, there map[string]*packagesv1.PackageVariant, wanted fanout.Wanted,
) (Spread, error) {
	k := &sets{shared: Shared{Shell: kernel.Shell{Client: c, Reader: c, FieldOwner: "sluice-test"}}, written: newWritten()}
	s := &spread{there: there, wanted: wanted}
	err := k.spread(ctx, obj, s)
	return Spread{s.made, s.changed, s.gone, s.unwanted, len(s.wanted.Problems)}, err
}
