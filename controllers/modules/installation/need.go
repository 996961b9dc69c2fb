package installation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/catalog/objects"
)

// secure keeps the template of a release that was chosen from going away before status tells that it is needed: a first
// round may take its time.
func (k *installations) secure(ctx context.Context, owner types.NamespacedName, template *modulesv1.ModuleTemplate, release *modulesv1.Release) error {
	k.options.Offers.NeedAlso(owner, release)
	if !template.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(template, modulesv1.InUseFinalizer) {
		return nil
	}
	held := template.DeepCopy()
	controllerutil.AddFinalizer(held, modulesv1.InUseFinalizer)
	patch := client.MergeFromWithOptions(template, client.MergeFromWithOptimisticLock{})
	err := k.options.Client.Patch(ctx, held, patch, client.FieldOwner(k.options.FieldOwner))
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("template %q: %w", template.Name, offers.ErrReleaseMoved)
	case err != nil:
		return fmt.Errorf("keep template %q from going: %w", template.Name, err)
	default:
		return nil
	}
}

// need notes which releases the installation needs by what is going to be reported of it. Who hears of that looks at both.
func (k *installations) need(obj *modulesv1.ModuleInstallation, r *round) {
	next := &modulesv1.ModuleInstallation{Status: obj.Status}
	if !r.lost || r.inventory != nil {
		reportRecord(&next.Status, r.inventory)
	}
	if r.chosen {
		next.Status.Desired = r.desired
	}
	k.options.Offers.Need(client.ObjectKeyFromObject(obj), objects.ReleasesOf(next))
}
