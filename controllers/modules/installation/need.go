package installation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/failure"
)

// seal marks the template as installed, which is asked for before anything of the release is applied: its version keeps
// this content from then on. A template that says something else by now is left alone.
func (k *installations) seal(template *modulesv1.ModuleTemplate, release *modulesv1.Release) func(context.Context) error {
	mark := modulesv1.InstalledVersion{Version: release.Version, Content: release.Content}
	moved := failure.Wait(modulesv1.ArtifactNotReadyReason, 0, fmt.Errorf("template %q: %w", template.Name, published.ErrReleaseMoved))
	return func(ctx context.Context) error {
		seen := template
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if seen.Status.Installed != nil && *seen.Status.Installed == mark {
				return nil
			}
			if now := objects.ReleaseOf(seen); now.Version != mark.Version || now.Digest != mark.Content {
				return moved
			}
			marked := seen.DeepCopy()
			marked.Status.Installed = &mark
			patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
			err := k.options.Client.Status().Patch(ctx, marked, patch, client.FieldOwner(k.options.FieldOwner))
			if apierrors.IsConflict(err) {
				seen = &modulesv1.ModuleTemplate{}
				if err := k.options.Reader.Get(ctx, client.ObjectKeyFromObject(template), seen); err != nil {
					return gone(err, moved)
				}
			}
			return gone(err, moved)
		})
	}
}

// gone is the other error for one that says that the object does not exist.
func gone(err, other error) error {
	if apierrors.IsNotFound(err) {
		return other
	}
	return err
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
