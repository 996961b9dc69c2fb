package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// handOver decides whether an object whose label another manager holds may be taken. It may if that is no installation,
// and the object is a member already: then somebody edited the label. It may also if the installation it belongs to is
// gone, or does not need it any more; that one then lets go of it when it prunes. Its Inventory tells for certain: it is
// read as it is stored, and lists an object before the first request for it. Everything else stays as it is.
func (r *round) handOver(
	ctx context.Context, o object, m *modulesv1.Member, conflict *cluster.ConflictError, live *metav1.PartialObjectMetadata,
) ([]Note, error) {
	ref := refOfObject(o.Unstructured)
	known := m != nil && m.UID != "" && m.UID == string(live.UID)
	if known && !strings.HasPrefix(conflict.Owner, ManagerPrefix) || live.Labels[Label] == r.id() {
		return []Note{taken(conflict)}, nil
	}
	owner, found, err := r.ownerOf(ctx, live)
	switch {
	case err != nil:
		return nil, err
	case !strings.HasPrefix(conflict.Owner, ManagerPrefix) || !found:
		return nil, fmt.Errorf("%s carries %s=%s, set by %s: it %w", describe(ref), Label,
			live.Labels[Label], cmp.Or(conflict.Owner, "somebody"), errOwned)
	case owner != nil && needs(owner, o.key):
		return nil, fmt.Errorf("%s is a member of the installation %s/%s: it %w", describe(ref),
			live.Labels[NamespaceLabel], live.Labels[InstallationLabel], errOwned)
	}
	from := live.Labels[NamespaceLabel] + "/" + live.Labels[InstallationLabel]
	if owner != nil {
		if err := r.recordTaking(ctx, o.key, owner, live); err != nil {
			return nil, err
		}
	}
	return []Note{{Reason: modulesv1.OwnershipTakenReason, Message: bounded(fmt.Sprintf(
		"took over %s from the installation %s, which does not need it any more", describe(ref), from))}}, nil
}

// ownerOf is the Inventory of the installation that the labels name. Found is false when they do not name any: the two
// names have to fit the identity. The Inventory is nil when there is none.
func (r *round) ownerOf(ctx context.Context, live *metav1.PartialObjectMetadata) (owner *modulesv1.Inventory, found bool, err error) {
	name, namespace := live.Labels[InstallationLabel], live.Labels[NamespaceLabel]
	if name == "" || namespace == "" || InstallationID(name, namespace) != live.Labels[Label] {
		return nil, false, nil
	}
	owner, err = r.engine.parts.Records.Stored(ctx, namespace, name)
	if err != nil {
		return nil, false, fmt.Errorf("load the inventory of %s/%s: %w", namespace, name, err)
	}
	return owner, true, nil
}

// needs says whether the installation wants the member, or may: while it applies an attempt, all that it lists counts.
func needs(owner *modulesv1.Inventory, k key) bool {
	for i := range owner.Data.Members {
		m := &owner.Data.Members[i]
		if keyOf(m) != k {
			continue
		}
		attempt := owner.Data.Attempt
		return wanted(m) || attempt != nil && attempt.Stage == modulesv1.StageApplying
	}
	return false
}

// recordTaking writes down whom an object is being taken from before it is: that one lets go only of what its claimant
// says it took. Who made it is handed over as well: what is in the record by its UID was not adopted. Members are applied
// in parallel, so one does this at a time.
func (r *round) recordTaking(ctx context.Context, k key, owner *modulesv1.Inventory, live *metav1.PartialObjectMetadata) error {
	r.taking.Lock()
	defer r.taking.Unlock()
	from := owner.Data.InstallationUID
	if m := index(r.record.Data.Members)[k]; m == nil || m.TakenFrom == from {
		return nil
	}
	had := index(owner.Data.Members)[k]
	return r.save(ctx, func(data *modulesv1.InventoryData) {
		m := index(data.Members)[k]
		m.TakenFrom = from
		if had != nil && !had.Adopted && had.UID == string(live.UID) {
			m.UID = had.UID
		}
	})
}

// letGo ends this installation's part in an object that another one has taken: applying nothing leaves what the other
// owns. It is done only where that one's Inventory says that it took the object from here, because a sole owner's
// empty apply would delete what it owns.
func (r *round) letGo(ctx context.Context, ref cluster.Ref, live *metav1.PartialObjectMetadata) error {
	if cluster.Fingerprint(live, r.manager()) == "" {
		return nil
	}
	claimant, found, err := r.ownerOf(ctx, live)
	if err != nil || !found || claimant == nil {
		return err
	}
	k := key{ref.GVK.Group, ref.GVK.Kind, ref.Namespace, ref.Name}
	m := index(claimant.Data.Members)[k]
	if m == nil || m.TakenFrom != r.in.UID || cluster.Fingerprint(live, Manager(claimant.Data.InstallationUID)) == "" {
		return nil
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(ref.GVK)
	empty.SetNamespace(ref.Namespace)
	empty.SetName(ref.Name)
	empty.SetUID(live.UID)
	_, err = r.client.Apply(ctx, empty, cluster.ApplyOptions{Manager: r.manager()})
	return err
}

// settleTakings forgets whom members were taken from, once that manager has no part in them any more.
func (r *round) settleTakings(ctx context.Context) error {
	var over []key
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if m.TakenFrom == "" || !wanted(m) {
			continue
		}
		if r.over(ctx) != nil {
			break
		}
		live, err := r.client.Metadata(ctx, refOf(m))
		if err != nil {
			// Healing and health speak of a member that is gone or cannot be read.
			continue
		}
		manager := Manager(m.TakenFrom)
		if !slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
			over = append(over, keyOf(m))
		}
	}
	if len(over) == 0 {
		return nil
	}
	return r.save(ctx, func(data *modulesv1.InventoryData) {
		known := index(data.Members)
		for _, k := range over {
			known[k].TakenFrom = ""
		}
	})
}

// owns says whether an object is provably this installation's: it carries the label, and is either the one on record
// or has fields of the manager that nobody else has.
func (r *round) owns(live metav1.Object, m *modulesv1.Member) bool {
	if live.GetLabels()[Label] != r.id() {
		return false
	}
	return m != nil && m.UID != "" && m.UID == string(live.GetUID()) || cluster.Fingerprint(live, r.manager()) != ""
}
