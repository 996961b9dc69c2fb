package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// Plan says what installing the target, which has to be there, would do, without writing anything: it is the summary of
// what Preview knows without evidence. Its digest names the release, the rendered objects and those that would go.
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
	rows, err := r.rows(ctx, planned)
	if err != nil {
		return modulesv1.Plan{}, err
	}
	return summary(planned, rows)
}

// summary is the plan that the rows make, deletions first.
func summary(planned *aim, rows []row) (modulesv1.Plan, error) {
	var changes []modulesv1.PlannedObject
	var counts [3]int32
	for i, what := range []struct {
		action Action
		change modulesv1.PlannedChange
	}{
		{ActionRemove, modulesv1.PlannedDelete}, {ActionChange, modulesv1.PlannedUpdate}, {ActionCreate, modulesv1.PlannedCreate},
	} {
		for _, one := range rows {
			if k := one.key; one.action == what.action {
				changes = append(changes, modulesv1.PlannedObject{Change: what.change, Group: k.group, Kind: k.kind, Namespace: k.namespace, Name: k.name})
				counts[i]++
			}
		}
	}
	result := modulesv1.Plan{
		Objects: changes[:min(len(changes), modulesv1.MaxPlannedObjects)], Delete: counts[0], Update: counts[1], Create: counts[2],
	}
	// What would come and change follows from the render and from what is applied meanwhile, which no approval is about.
	release := planned.target.Release
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
