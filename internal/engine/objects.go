package engine

import (
	"context"

	"sluice.dev/sluice/internal/engine/build"
)

// Render gives the objects of the target, which has to be there, as they are created when it is installed: by the code that
// Reconcile renders with. Those that an annotation keeps from being applied are left out. Nothing is written. What is wrong with
// the release is a StageError of StageBuild, which may quote what is secret.
func (e *Engine) Render(ctx context.Context, in Installation) (build.Built, error) {
	r, end := e.round(in)
	defer end()
	if err := r.open(ctx); err != nil {
		return build.Built{}, err
	}
	aimed, err := r.renders.aimAt(ctx, in.Target)
	if err != nil {
		return build.Built{}, err
	}
	made, err := r.renders.objects(ctx, aimed)
	if err != nil {
		return build.Built{}, err
	}
	r.aim = aimed
	built := build.Built{Unused: r.unused()}
	for i := range made.objects {
		built.Objects = append(built.Objects, made.objects[i].whole)
	}
	return built, nil
}
