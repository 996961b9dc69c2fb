package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// cached gives what another one stores from memory, as a controller's cache does.
type cached struct {
	engine.Records
	inventory *modulesv1.Inventory
}

func (c *cached) Load(context.Context, string, string) (*modulesv1.Inventory, error) {
	return c.inventory, nil
}

func (c *cached) Create(_ context.Context, inventory *modulesv1.Inventory) error {
	inventory.ResourceVersion = "1"
	c.inventory = inventory
	return nil
}

func (c *cached) Update(_ context.Context, inventory *modulesv1.Inventory) error {
	c.inventory = inventory
	inventory.ResourceVersion += "1"
	return nil
}

// TestNothingChangedIsCheap: a round that finds 300 objects as they were applied makes no more garbage than for its
// own bookkeeping.
//
//nolint:paralleltest // The allocations of other tests would be counted as well.
func TestNothingChangedIsCheap(t *testing.T) {
	r := newRig(t)
	r.memory = &cached{}
	r.start(nil)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%03d.yaml", i)] = configMap(fmt.Sprintf("cm-%03d", i), "same")
	}
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	round := func() {
		if _, err := r.engine.Reconcile(t.Context(), r.in); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	const rounds = 200
	for range rounds {
		round()
	}
	allocations := testing.AllocsPerRun(rounds, round)
	t.Logf("a round takes %v and %.0f allocations", time.Since(began)/rounds, allocations)
	if allocations > 300 {
		t.Errorf("%.0f allocations, more than one for each object", allocations)
	}
}
