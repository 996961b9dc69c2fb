package plan

import (
	"context"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
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
	if err != nil {
		return build.Built{}, d.failed(ctx, err)
	}
	if showSecrets {
		return built, nil
	}
	made, err := d.derived(ctx, built.Objects)
	if err != nil {
		return build.Built{}, d.failed(ctx, err)
	}
	built.Objects = hide(built.Objects, d.values(), made)
	return built, nil
}
