package installation

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/printable"
)

// planner says what installing a release would do.
type planner func(*engine.Target) (*planned, error)

// choose decides which release the installation should run, and how to get it. Without a target, what is installed is
// kept, and the round says why.
func (k *installations) choose(ctx context.Context, obj *modulesv1.ModuleInstallation, r *round, plan planner) (*engine.Target, error) {
	index, err := k.options.Offers.Index(ctx, obj.Namespace)
	if err != nil {
		return nil, err
	}
	request, now := objects.RequestOf(obj), k.options.Clock.Now()
	var approvable *catalog.Plan
	r.resolve = func() catalog.Decision {
		installed := objects.InstalledOf(obj, r.inventory)
		installed.Plan = approvable
		return catalog.Resolve(request, installed, index, now)
	}
	r.decision, r.chosen = r.resolve(), true
	chosen := r.decision.Chosen()
	if chosen == nil {
		k.explainHold(r)
		return nil, nil
	}
	target, waiting, err := k.target(ctx, client.ObjectKeyFromObject(obj), r, chosen)
	if err != nil {
		return nil, err
	}
	r.desired = &target.Release
	if hold := r.decision.Hold; hold != nil && hold.Reason == modulesv1.AwaitingApprovalReason && waiting == "" {
		proposed, err := plan(target)
		if err != nil {
			// What is installed is kept whether or not the plan can be made; pending tells.
			k.explainHold(r)
			r.pending.Message = printable.Cut("It cannot be said yet what the release would change: "+err.Error(), maxMessage)
			r.planAgain = cmp.Or(failure.Of(err).After, obj.Spec.GetRetryInterval())
			return nil, nil
		}
		approvable = &catalog.Plan{Version: chosen.Version, Content: chosen.Digest, Digest: proposed.plan.Digest}
		if proposed.begun {
			// It was approved before it was begun, whatever the spec approves by now.
			request.Upgrade.Approve = proposed.plan.Digest
		}
		r.decision = r.resolve()
		if r.decision.Hold != nil {
			k.explainHold(r)
			r.pending.Plan = &proposed.plan
			return nil, nil
		}
	}
	switch {
	case r.decision.Hold != nil:
		k.explainHold(r)
		return nil, nil
	case waiting != "":
		k.hold(r, modulesv1.ArtifactNotReadyReason, waiting)
		return nil, nil
	case obj.Spec.GetManagement() == modulesv1.ManagementPaused && r.decision.Changed:
		k.hold(r, modulesv1.PausedReason, describe(r.desired)+" is not installed while management is Paused")
	case k.asksFirst(obj, r, target, plan):
		return nil, nil
	}
	return target, nil
}

// asksFirst holds an edit of the spec that would remove objects of the installed release, unless its plan is approved or
// being carried out, where upgrades are not automatic. What cannot be planned yet is held as well: it might remove some.
func (k *installations) asksFirst(obj *modulesv1.ModuleInstallation, r *round, target *engine.Target, plan planner) bool {
	if obj.Spec.GetUpgradeMode() == modulesv1.UpgradeAutomatic || obj.Spec.GetManagement() == modulesv1.ManagementPaused ||
		r.inventory == nil || !objects.SameRelease(r.inventory.Data.Current, &target.Release) {
		return false
	}
	proposed, err := plan(target)
	switch {
	case err != nil:
		k.hold(r, modulesv1.AwaitingApprovalReason, "It cannot be said yet whether the spec of now would remove objects: "+err.Error())
		r.planAgain = cmp.Or(failure.Of(err).After, obj.Spec.GetRetryInterval())
	case proposed.begun || proposed.plan.Delete == 0 || obj.Spec.GetApprove() == proposed.plan.Digest:
		return false
	default:
		k.hold(r, modulesv1.AwaitingApprovalReason, fmt.Sprintf(
			"The edit would remove %d of the installed objects, and waits for the digest of its plan in approve: %s", proposed.plan.Delete, proposed.plan.Digest))
		r.pending.Plan = &proposed.plan
	}
	r.asking = true
	return true
}

// explainHold says in status what the catalogue holds the installation for.
func (k *installations) explainHold(r *round) {
	hold := r.decision.Hold
	k.hold(r, hold.Reason, hold.Message)
}

// planned is a plan, and everything that it was made for.
type planned struct {
	generation int64
	record     string
	release    modulesv1.Release
	variables  map[string]string

	plan modulesv1.Plan
	// begun says that this very plan is being carried out.
	begun bool
}

// isFor says whether the other plan would be the same.
func (p *planned) isFor(other planned) bool {
	return p.generation == other.generation && p.record == other.record && maps.Equal(p.variables, other.variables) &&
		equality.Semantic.DeepEqual(p.release, other.release)
}

// plan says what the candidate would change. It is made again only when something changes that it depends on.
func (k *installations) plan(
	ctx context.Context, obj *modulesv1.ModuleInstallation, in engine.Installation, candidate *engine.Target, r *round, memory *memory,
) (*planned, error) {
	values, err := k.readVariables(ctx, obj, in.Identity, memory)
	if err != nil {
		return nil, err
	}
	wanted := planned{generation: obj.Generation, release: candidate.Release, variables: values}
	if r.inventory != nil {
		wanted.record = string(r.inventory.UID) + "/" + r.inventory.ResourceVersion
	}
	if known := memory.planned; known != nil && known.isFor(wanted) {
		return known, nil
	}
	in.Target, in.Variables = candidate, values
	if wanted.plan, err = k.options.Engine.Plan(ctx, in); err == nil {
		wanted.begun, err = k.options.Engine.Begun(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	memory.planned = &wanted
	return &wanted, nil
}

// mayGoOn says whether what is on record may be worked on while the choice is held. An attempt that needed an approval
// goes on only as it was approved: another config makes another plan of it. The installed release needs none, as long as
// no object of another one has taken its place.
func (k *installations) mayGoOn(ctx context.Context, obj *modulesv1.ModuleInstallation, in engine.Installation, r *round) bool {
	if in.Target != nil || in.Current == nil || obj.Spec.GetUpgradeMode() != modulesv1.UpgradeManual {
		return true
	}
	data := &r.inventory.Data
	if data.Attempt == nil || data.Current == nil || objects.SameRelease(data.Current, &data.Attempt.Release) {
		return true
	}
	in.Target = in.Current
	begun, err := k.options.Engine.Begun(ctx, in)
	// What cannot be rendered now cannot be worked on either.
	return begun || err != nil
}
