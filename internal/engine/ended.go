package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// ended says that a member is a Job that ended well, and that its ttlSecondsAfterFinished has removed, or will. That it
// is gone is no drift then: it has run for this release.
func (r *round) ended(m *modulesv1.Member) bool {
	if kindOf(m).GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	if meta := r.seen(m); meta != nil {
		return meta.Ended && string(meta.UID) == m.UID
	}
	return m.Ended || r.engine.parts.Watcher.Ended(r.key(), watched(refOf(m)))
}

// gone says that a member is a Job that has ended, and is gone, or not known to be there still.
func (r *round) gone(m *modulesv1.Member) bool { return r.seen(m) == nil && r.ended(m) }

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
