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

// useChecker forgets what was found by other expressions. What the record says of the health by these is taken as found,
// of exactly the versions that it names.
func (r *round) useChecker(expressions string, checker *health.Checker) {
	mem := r.memory
	if mem.checker != nil && mem.judgesBy == expressions {
		return
	}
	mem.checker, mem.judgesBy, mem.checked = checker, expressions, map[key]checked{}
	if r.record.Data.JudgedBy != fingerprintOf(expressions) {
		return
	}
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; m.HealthyAt != "" {
			mem.checked[keyOf(m)] = checked{got: m.HealthyAt, status: health.Current, recalled: true}
		}
	}
}

// fingerprintOf tells health expressions apart.
func fingerprintOf(expressions string) string {
	sum := sha256.Sum256([]byte(expressions))
	return hex.EncodeToString(sum[:8])
}

// noteHealth writes down which versions of members were found healthy, along with what is written anyway, and as far as
// there is room for it.
func (r *round) noteHealth(data *modulesv1.InventoryData) {
	if r.memory.checker == nil {
		return
	}
	data.JudgedBy = fingerprintOf(r.memory.judgesBy)
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
					found = append(found, r.judgeLive(m, live, checker))
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

// judgeLive judges a member that was read.
func (r *round) judgeLive(m *modulesv1.Member, live *unstructured.Unstructured, checker *health.Checker) judgement {
	found := r.unjudged(m)
	found.checked.got = live.GetResourceVersion()
	found.checked.status, found.checked.message = checker.Check(live)
	return found
}
