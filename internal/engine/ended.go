package engine

import (
	"context"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// recordEnds writes down which Jobs have ended, before they are forgotten by everybody else.
func (r *round) recordEnds(ctx context.Context) error {
	news := false
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		news = news || wanted(m) && !m.Ended && r.gone(m)
	}
	if !news {
		return nil
	}
	return r.save(ctx, r.markEnds)
}

// markEnds marks the Jobs that have ended.
func (r *round) markEnds(data *modulesv1.InventoryData) {
	for i := range data.Members {
		m := &data.Members[i]
		m.Ended = wanted(m) && r.ended(m)
	}
}
