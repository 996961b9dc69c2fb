package installation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
)

// target is how to get the release that was chosen. Where waiting says something, the release cannot be had yet, and the
// target says no more than what it is.
func (k *installations) target(
	ctx context.Context, owner types.NamespacedName, r *round, chosen *catalog.Release,
) (target *engine.Target, waiting string, err error) {
	namespace := r.decision.Namespace
	template, release, err := k.options.Offers.Release(ctx, namespace, *chosen)
	if errors.Is(err, published.ErrReleaseMoved) {
		// It moved after it was chosen, and the news of it is on its way here.
		release = modulesv1.Release{
			Module: r.decision.Module, Version: chosen.Version, Channel: r.decision.Channel(),
			Namespace: namespace, Template: chosen.Template, Content: chosen.Digest,
		}
		return &engine.Target{Release: release}, err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	k.options.Offers.NeedAlso(owner, &release)
	recorded := objects.RecordedAs(r.inventory, namespace, chosen)
	if recorded != nil {
		release = *recorded.DeepCopy()
		// When it was applied is said of what is installed; of what is chosen it would be one more write of status.
		release.AppliedAt, release.HealthyAt = nil, nil
	}
	release.Channel = r.decision.Channel()
	target = &engine.Target{Release: release, Seal: k.seal(template, &release)}
	missing, err := k.locate(ctx, target)
	switch {
	case err != nil:
		return nil, "", err
	case missing == nil, recorded != nil:
		// What is installed, or on its way, may be all in the engine's hands.
	case failure.Of(missing).Reason == modulesv1.SourceNotFoundReason && template.Spec.Artifact.SourceRef == nil:
		// It is about to be made, and says the same then.
		waiting = fmt.Sprintf("%s %s has no artifact yet", release.Source.Kind, release.Source.Name)
	default:
		waiting = missing.Error()
	}
	return target, waiting, target.Describe(template)
}

// current is how to get the release on record: the one that is being applied, or else the one that was. What its
// template says beside the artifact goes with it for as long as that states the same release. Beside an error comes what
// is on record: it may be enough, if the engine has the bytes.
func (k *installations) current(ctx context.Context, inventory *modulesv1.Inventory) (*engine.Target, error) {
	if inventory == nil {
		return nil, nil
	}
	release := inventory.Data.Current
	if inventory.Data.Attempt != nil {
		release = &inventory.Data.Attempt.Release
	}
	if release == nil {
		return nil, nil
	}
	if err := k.credible(inventory.Namespace, release); err != nil {
		return nil, err
	}
	target := &engine.Target{Release: *release.DeepCopy()}
	if recorded := inventory.Data.Deletion; recorded != nil {
		target.Deletion, target.ManagedResources = recorded.Mode, recorded.ManagedResources
	}
	target.Health = inventory.Data.Health
	if _, err := k.locate(ctx, target); err != nil {
		return target, err
	}
	var template modulesv1.ModuleTemplate
	err := k.options.Client.Get(ctx, types.NamespacedName{Namespace: release.Namespace, Name: release.Template}, &template)
	if err != nil {
		return target, client.IgnoreNotFound(err)
	}
	if stated := objects.ReleaseOf(&template); stated.Digest != release.Content || stated.Version != release.Version {
		return target, nil
	}
	return target, target.Describe(&template)
}

// credible says whether a record can be of a release that was installed in the namespace. Records are written here alone,
// but with the rights of others somebody else may do so, and the controller reads every namespace: what the record names
// is looked up only where the installation could have chosen it from, and never by less than its digest.
func (k *installations) credible(namespace string, release *modulesv1.Release) error {
	switch {
	case !k.options.Offers.Reach(release.Namespace, namespace):
		return failure.Wait(modulesv1.SourceNotFoundReason, 0, fmt.Errorf(
			"the Inventory has a release of namespace %q, which nothing is installed from here", release.Namespace))
	case release.Digest == "":
		return failure.Wait(modulesv1.SourceNotFoundReason, 0, errors.New("the Inventory does not say which artifact the release is"))
	default:
		return nil
	}
}

// locate finds out where the release's bytes are now. Those of a release that is on record are also found by their
// digest alone, for as long as they are remembered. Missing says why there are none to fetch now.
func (k *installations) locate(ctx context.Context, target *engine.Target) (missing, err error) {
	release := &target.Release
	target.Path = release.Path
	target.Artifact = fetch.Artifact{Digest: release.Digest, Revision: release.Revision}
	artifact, err := k.options.Offers.Artifact(ctx, release)
	if err != nil {
		if failure.Of(err).Reason != "" {
			return err, nil
		}
		return nil, err
	}
	target.Artifact = fetch.Artifact{
		URL: artifact.URL, Digest: artifact.Digest, Revision: artifact.Revision, Stored: artifact.LastUpdateTime.UTC(),
	}
	if artifact.Size != nil {
		target.Artifact.Size = *artifact.Size
	}
	if release.Digest == "" {
		release.Digest, release.Revision = artifact.Digest, artifact.Revision
	}
	return nil, nil
}
