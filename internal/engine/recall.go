package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
)

// many is from how many members of one kind and namespace on a list of whole objects is less than reading each.
const many = 10

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

// readMany reads members that are many of a kind and namespace with one list each, and leaves the rest, and those that
// are not in it. A list that fails leaves all of its members: reading them one by one says why.
func (r *round) readMany(
	ctx context.Context, over func() error, unread []*modulesv1.Member, checker *health.Checker,
) (found []judgement, left []*modulesv1.Member) {
	type place struct {
		gvk       schema.GroupVersionKind
		namespace string
	}
	groups := map[place]map[string]*modulesv1.Member{}
	for _, m := range unread {
		at := place{kindOf(m), m.Namespace}
		if groups[at] == nil {
			groups[at] = map[string]*modulesv1.Member{}
		}
		groups[at][m.Name] = m
	}
	for at, members := range groups {
		if len(members) >= many && over() == nil {
			_ = r.client.Objects(ctx, at.gvk, at.namespace, Label+"="+r.id(), func(live *unstructured.Unstructured) { // See above.
				if m := members[live.GetName()]; m != nil && over() == nil {
					found = append(found, r.judged(m, live, checker))
					delete(members, live.GetName())
				}
			})
		}
		for _, m := range members {
			left = append(left, m)
		}
	}
	return found, left
}
