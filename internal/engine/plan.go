package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// Plan says what installing the target, which has to be there, would do, without writing anything. Its digest names the
// release, the rendered objects and those that would go.
func (e *Engine) Plan(ctx context.Context, in Installation) (modulesv1.Plan, error) {
	r, end := e.round(in)
	defer end()
	if err := r.open(ctx); err != nil {
		return modulesv1.Plan{}, err
	}
	planned, err := r.renders.aimAt(ctx, in.Target)
	if err != nil {
		return modulesv1.Plan{}, err
	}
	changes, err := r.changes(ctx, planned)
	if err != nil {
		return modulesv1.Plan{}, err
	}
	result := modulesv1.Plan{Objects: changes[:min(len(changes), modulesv1.MaxPlannedObjects)]}
	for _, one := range changes {
		switch one.Change {
		case modulesv1.PlannedDelete:
			result.Delete++
		case modulesv1.PlannedUpdate:
			result.Update++
		case modulesv1.PlannedCreate:
			result.Create++
		}
	}
	// What would come and change follows from the render and from what is applied meanwhile, which no approval is about.
	release := r.in.Target.Release
	raw, err := json.Marshal([]any{release.Version, release.Digest, release.Path, planned.digest, changes[:result.Delete]})
	if err != nil {
		return modulesv1.Plan{}, failure.At(StageBuild, err)
	}
	result.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
	return result, nil
}

// Begun says whether the attempt on record is at exactly the target, which has to be there: the same release, rendered to
// the same objects with the config and variables of now. Nothing is written, and nothing rendered that was before.
func (e *Engine) Begun(ctx context.Context, in Installation) (bool, error) {
	r, end := e.round(in)
	defer end()
	if err := r.open(ctx); err != nil || r.record == nil || r.record.Data.Attempt == nil {
		return false, err
	}
	proposed, err := r.renders.aimAt(ctx, in.Target)
	return err == nil && r.under(proposed), err
}

// changes are all that the plan would do, deletions first. What is installed is not rendered: only leftovers can go.
func (r *round) changes(ctx context.Context, planned *aim) ([]modulesv1.PlannedObject, error) {
	var changes []modulesv1.PlannedObject
	add := func(change modulesv1.PlannedChange, k key) {
		changes = append(changes, modulesv1.PlannedObject{Change: change, Group: k.group, Kind: k.kind, Namespace: k.namespace, Name: k.name})
	}
	known := index(r.members())
	stays := func(k key) bool { return wanted(known[k]) }
	if r.record == nil || r.record.Data.Attempt != nil || !r.recorded(planned) {
		made, err := r.renders.objects(ctx, planned)
		if err != nil {
			return nil, err
		}
		for _, o := range made.objects {
			switch m := known[o.key]; {
			case m == nil || m.UID == "":
				add(modulesv1.PlannedCreate, o.key)
			case m.RenderHash != o.hash && !o.once:
				add(modulesv1.PlannedUpdate, o.key)
			}
		}
		stays = func(k key) bool { return made.keys[k] }
	}
	for k, m := range known {
		if stays(k) || m.Claimed || !r.in.Spec.PruneEnabled() {
			continue
		}
		switch what, err := r.foreseen(ctx, m); {
		case err != nil:
			return nil, err
		case what == goes:
			add(modulesv1.PlannedDelete, k)
		}
	}
	order := []modulesv1.PlannedChange{modulesv1.PlannedDelete, modulesv1.PlannedUpdate, modulesv1.PlannedCreate}
	slices.SortFunc(changes, func(a, b modulesv1.PlannedObject) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Change), slices.Index(order, b.Change)), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	return changes, nil
}

// foreseen is the fate of a member once no release needs it, as far as the record and the watch tell it: what is in a
// container, and who else claims a member, is found out when it is about to go. Without a watch a member is looked at, for
// a restart must not make another plan.
func (r *round) foreseen(ctx context.Context, m *modulesv1.Member) (fate, error) {
	known := r.recordedFacts(m)
	if what, _ := known.fate(); what != goes {
		return what, nil
	}
	if meta, seen := r.state(m); !seen {
		_, live, err := find(ctx, r.client, refOf(m))
		switch {
		case err == nil:
			known.keptBy = cluster.KeptBy(live)
		case !errors.Is(err, cluster.ErrNotFound) && !errors.Is(err, cluster.ErrNoKind) && !errors.Is(err, cluster.ErrForbidden):
			return goes, failure.At(StagePrune, failure.Retry(modulesv1.PruneFailedReason, err))
		}
	} else if meta != nil && meta.Kept {
		known.keptBy = "an annotation"
	}
	what, _ := known.fate()
	return what, nil
}
