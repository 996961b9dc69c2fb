package engine_test

import (
	"context"
	"errors"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestNothingBeginsUnsealed: whoever is asked first may have the attempt put off, and finds nothing written when it begins.
func TestNothingBeginsUnsealed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"}
	moved, asked := errors.New("the release has moved"), 0
	r.in.Target = r.target("1.0.0", files)
	r.in.Target.Health = []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "Secret", Current: "true"}}
	stored := func() *modulesv1.Inventory {
		t.Helper()
		record, err := r.records.Stored(t.Context(), r.in.Namespace, r.in.Name)
		check(t, err)
		return record
	}
	r.in.Target.Seal = func(context.Context) error {
		asked++
		return moved
	}
	if _, err := r.engine.Reconcile(t.Context(), r.in); !errors.Is(err, moved) || stored() != nil {
		t.Errorf("begun unsealed: %v, %+v", err, stored())
	}
	r.in.Target.Seal = func(context.Context) error {
		asked++
		if record := stored(); record != nil {
			t.Errorf("there is a record before the release is sealed: %+v", record.Data)
		}
		return nil
	}
	r.settle("installed", settled)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	if health := stored().Data.Health; len(health) != 1 {
		t.Errorf("what is said of health is not on record: %+v", health)
	}

	// What is installed is looked after while an upgrade cannot be sealed.
	r.in.Target = r.target("2.0.0", map[string]string{"settings.yaml": files["settings.yaml"] + "data: {a: b}\n"})
	r.in.Target.Seal = func(context.Context) error { return moved }
	if _, err := r.engine.Reconcile(t.Context(), r.in); !errors.Is(err, moved) || stored().Data.Attempt != nil {
		t.Errorf("begun unsealed: %v, %+v", err, stored().Data.Attempt)
	}
}
