package packages

import (
	"context"
	"fmt"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/fanout"
)

// readGates says which object of a gate is not ready; empty if all are. Where one cannot be read, nothing tells when it can: again is
// when to look.
func (r *rolling) readGates(ctx context.Context) (closed string, again time.Duration) {
	for i := range r.obj.Spec.Rollout.Gates {
		ref := r.obj.Spec.Rollout.Gates[i].Object
		if ref == nil {
			continue
		}
		what := fmt.Sprintf("spec.rollout.gates[%d]: %s %s", i, ref.Kind, ref.Name)
		objects, err := r.shared.Gates.Read(ctx, r.found.identity, r.found.gates[i])
		switch {
		case err != nil:
			return fmt.Sprintf("%s: %v", what, err), r.shared.RequeueDependency
		case len(objects) == 0:
			return what + " does not exist", 0
		}
		if state, message := (&health.Checker{}).Check(objects[0]); state != health.Current {
			return fmt.Sprintf("%s is not ready: %s", what, message), 0
		}
	}
	return "", 0
}

// closed says why a gate does not hold for a wave that is done; empty if all do.
func (r *rolling) closed(ctx context.Context, compiled *fanout.Set, wave int) string {
	if !r.gatesRead {
		r.gates, r.again = r.readGates(ctx)
		r.gatesRead = true
	}
	if r.gates != "" {
		return r.gates
	}
	for _, p := range r.crew {
		if m := &p.member; m.Wave != wave || m.IsNew || m.IsFree || m.HasJoined || p.err != nil {
			continue
		}
		if err := compiled.Ready(p.target, r.seen, r.found.seen, p.newest.Downstream.Repo); err != nil {
			return fmt.Sprintf("%s: %v", p.target.Name, err)
		}
	}
	return ""
}

// watchGates finds out what the objects of gates are, by the places of the gates.
func (f *finding) watchGates() error {
	if f.obj.Spec.Rollout == nil {
		return nil
	}
	for i := range f.obj.Spec.Rollout.Gates {
		ref := f.obj.Spec.Rollout.Gates[i].Object
		if ref == nil {
			continue
		}
		want, err := f.want(&packagesv1.ObjectSelector{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		if err != nil {
			return fmt.Errorf("spec.rollout.gates[%d].object: %w", i, err)
		}
		f.gates[i] = want
	}
	return nil
}
