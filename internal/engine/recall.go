package engine

import (
	"crypto/sha256"
	"encoding/hex"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
)

// judgesBy forgets what was found by other expressions. What the record says of the health by these is taken as found,
// of exactly the versions that it names.
func (r *round) judgesBy(expressions string) {
	sum, mem := sha256.Sum256([]byte(expressions)), r.memory
	fingerprint := hex.EncodeToString(sum[:8])
	if mem.judgesBy == fingerprint {
		return
	}
	mem.judgesBy, mem.checked = fingerprint, map[key]checked{}
	if r.record.Data.JudgedBy != fingerprint {
		return
	}
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; m.HealthyAt != "" {
			mem.checked[keyOf(m)] = checked{got: m.HealthyAt, status: health.Current, recalled: true}
		}
	}
}

// noteHealth writes down which versions of members were found healthy, along with what is written anyway, and as far as
// there is room for it.
func (r *round) noteHealth(data *modulesv1.InventoryData) {
	if r.memory.judgesBy == "" {
		return
	}
	data.JudgedBy = r.memory.judgesBy
	for i := range data.Members {
		m := &data.Members[i]
		m.HealthyAt = ""
		if last := r.memory.checked[keyOf(m)]; wanted(m) && last.status == health.Current {
			m.HealthyAt = last.got
		}
	}
	if fits(data.Members, data.Health) == nil {
		return
	}
	for i := range data.Members {
		data.Members[i].HealthyAt = ""
	}
}
