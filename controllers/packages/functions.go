package packages

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// FunctionsChanged has the variants looked at that stand still because of a function that might not run: others may by now.
func (p *Plane) FunctionsChanged(ctx context.Context, reader client.Reader) error {
	var all packagesv1.PackageVariantList
	if err := reader.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		v := &all.Items[i]
		switch conditions.GetReason(v, meta.ReadyCondition) {
		case packagesv1.UnknownFunctionReason, packagesv1.FunctionUntrustedReason:
			p.WakeVariant(client.ObjectKeyFromObject(v))
		}
	}
	return nil
}
