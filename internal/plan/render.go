package plan

import (
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/failure"
)

// Render gives the objects of the release as the engine creates them, without the values of Secrets unless these are to be shown.
// Neither evidence nor the right to write is asked for. An error is as that of Make.
func (p *Planner) Render(ctx context.Context, asked Request, showSecrets bool) (build.Built, error) {
	d, err := p.desk(ctx, asked)
	if err != nil {
		return build.Built{}, err
	}
	defer d.close()
	// What is there is not asked for: nothing is compared.
	d.records.members = func(context.Context) ([]modulesv1.Member, error) { return nil, nil }
	built, err := d.engine.Render(ctx, d.in)
	if staged, ok := errors.AsType[*failure.StageError](err); ok && staged.Stage == engine.StageBuild && ctx.Err() == nil {
		// What is wrong with an object may quote what was substituted in it.
		hidden, found := newMask(d.values(), nil), failure.Of(err)
		err = &failure.Error{Disposition: found.Disposition, Reason: found.Reason, Err: errors.New(hidden.text(err.Error()))}
	}
	if err != nil {
		return build.Built{}, d.failed(err)
	}
	if !showSecrets {
		built.Objects = hide(built.Objects, d.values(), d.derived(ctx, built.Objects)...)
	}
	return built, nil
}
