package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// handOver decides whether an object that carries another owner's label may be taken. It may if the installation that it
// belongs to is gone, or does not need it any more: its Inventory tells for certain, which is read as it is stored, and
// lists an object before the first request for it. What that one had set is inherited. Everything else stays as it is; an
// installation that needs an object is left a claim, to be found once it does not.
func (t taker) handOver(ctx context.Context, o object, conflict *cluster.ConflictError, live *metav1.PartialObjectMetadata) (right, error) {
	ref := refOfObject(o.Unstructured)
	holder := ""
	if conflict != nil {
		holder = conflict.Owner
	}
	owner, found, err := ownerOf(ctx, t.records, live)
	switch {
	case err != nil:
		return right{}, err
	case !strings.HasPrefix(holder, ManagerPrefix) || !found:
		return right{}, fmt.Errorf("%s carries %s=%s, set by %s: it %w", describe(ref), Label, live.Labels[Label], cmp.Or(holder, "somebody"), errOwned)
	}
	from := live.Labels[NamespaceLabel] + "/" + live.Labels[InstallationLabel]
	never := t.policy == modulesv1.AdoptNever
	var listed *claim
	made, needed := false, false
	if owner != nil {
		if had := index(owner.Data.Members)[o.key]; had != nil {
			made, needed = !had.Adopted && had.UID == string(live.UID), needs(owner, had)
			listed = &claim{live.UID, made, owner}
		}
	}
	switch {
	case needed && never:
		return right{}, fmt.Errorf("%s is a member of the installation %s: it %w", describe(ref), from, errOwned)
	case needed:
		return right{claim: listed}, fmt.Errorf("%s is a member of the installation %s: it %w; take it out of there, which hands it over", describe(ref), from, errOwned)
	case never:
		return right{}, fmt.Errorf("%s was made by the installation %s, and spec.adopt is Never: it %w", describe(ref), from, errOwned)
	}
	return right{heirs: isBequeathed, made: made, claim: listed, notes: []Note{{Reason: modulesv1.OwnershipTakenReason, Message: bounded(fmt.Sprintf(
		"took over %s from the installation %s, which does not need it any more", describe(ref), from))}}}, nil
}

// claimOnly claims an object without changing anything: it asks for an apply to a version that no object has, of a life
// that is not to be made anew. Whoever has the right to write the object is told who holds it, and refused.
func (t taker) claimOnly(ctx context.Context, o object, uid types.UID) *claim {
	none := cluster.Version{UID: uid, ResourceVersion: cluster.Absent().ResourceVersion}
	_, err := t.client.Apply(ctx, o.Unstructured, cluster.ApplyOptions{Manager: t.manager, Only: none})
	conflict, refused := errors.AsType[*cluster.ConflictError](err)
	if !refused {
		return nil
	}
	live, err := t.client.Metadata(ctx, refOfObject(o.Unstructured))
	if err != nil || live.Labels[Label] == t.id {
		return nil
	}
	right, _ := t.handOver(ctx, o, conflict, live) // What is refused is told when its stage comes.
	return right.claim
}

// ownerOf is the Inventory of the installation that the labels name. Found is false when they do not name any: the two
// names have to fit the identity. The Inventory is nil when there is none. One whose name is too long for a label is told
// by the identity.
func ownerOf(ctx context.Context, records Records, live *metav1.PartialObjectMetadata) (owner *modulesv1.Inventory, found bool, err error) {
	name, namespace := live.Labels[InstallationLabel], live.Labels[NamespaceLabel]
	id := live.Labels[Label]
	switch {
	case name == "" || namespace == "":
		return nil, false, nil
	case InstallationID(name, namespace) == id:
		owner, err = records.Stored(ctx, namespace, name)
	case strings.HasSuffix(name, cutMark(id)):
		var all []modulesv1.Inventory
		all, err = records.List(ctx, namespace, "")
		if at := slices.IndexFunc(all, func(one modulesv1.Inventory) bool { return InstallationID(one.Name, namespace) == id }); at >= 0 {
			owner = &all[at]
		}
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("load the inventory of %s/%s: %w", namespace, name, err)
	}
	return owner, true, nil
}

// needs says whether the installation wants its member, or may: while it applies an attempt, all that it lists counts. What
// the attempt drops does not once the attempt itself waits for an object of others: two that swap would else wait for each
// other for ever.
func needs(owner *modulesv1.Inventory, m *modulesv1.Member) bool {
	data := &owner.Data
	if wanted(m) || data.Attempt == nil || data.Attempt.Stage != modulesv1.StageApplying {
		return wanted(m)
	}
	return m.State != modulesv1.MemberDeleting || !slices.ContainsFunc(data.Members, func(one modulesv1.Member) bool { return one.Claimed })
}

// ClaimPrefix begins a label on the Inventory of an installation that was refused an object; 6 bits of a hash of the one
// that has it follow, so that there is room for claims of any number of installations.
const ClaimPrefix = "claims.modules.sluice.dev/"

// claimLabel is the label of claims to objects of an installation, by its InstallationID, and of some others'.
func claimLabel(id string) string {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s%02x", ClaimPrefix, sum[0]&0x3f)
}

// claim says that another installation has an object. It is made only when the API server has refused an apply for that
// reason: whoever makes one has the right to write the object.
type claim struct {
	uid types.UID
	// made says that the owner made the object, rather than adopted it.
	made bool
	// owner is the installation that has it.
	owner *modulesv1.Inventory
}

func (c *claim) label() string { return claimLabel(InstallationID(c.owner.Name, c.owner.Namespace)) }

// isOn says that the claim to a member is on record.
func (c *claim) isOn(record *modulesv1.Inventory, m *modulesv1.Member) bool {
	_, labelled := record.Labels[c.label()]
	return m.Claimed && m.UID == string(c.uid) && labelled
}

// noteResults remembers what came of objects until it is in the record. A watch tells when another installation gives up
// one that is claimed.
func (r *round) noteResults(results []answer[object, result]) {
	known := index(r.record.Data.Members)
	for _, one := range results {
		k, claim := one.of.key, one.found.claim
		if !errors.Is(one.err, cluster.ErrForbidden) {
			delete(r.memory.unmade, k)
		}
		claims := claim != nil && known[k] != nil && !claim.isOn(r.record, known[k])
		if claims || claim == nil && one.err == nil {
			r.memory.progress[k] = one.found.progress
		}
		if claims {
			r.watch(r.record.Data.Members)
		}
	}
}

// claimLater claims what comes after a refused stage, and is a member of the installations that refused that: it would be
// deleted before the refused objects are handed over, and made anew after. What cannot be claimed is asked for again when
// the stage is.
func (r *round) claimLater(ctx context.Context, refused []answer[object, result], later []object) []answer[object, result] {
	had := map[key]types.UID{}
	for _, one := range refused {
		if one.found.claim == nil {
			continue
		}
		for m := range every(one.found.claim.owner.Data.Members) {
			had[keyOf(m)] = types.UID(m.UID)
		}
	}
	known := index(r.record.Data.Members)
	later = slices.DeleteFunc(slices.Clone(later), func(o object) bool {
		m := known[o.key]
		return had[o.key] == "" || o.once || m == nil || m.Claimed && m.UID == string(had[o.key])
	})
	taker := r.taker()
	claims := each(ctx, r.over, later, func(o object) (result, error) {
		return result{progress: progress{claim: taker.claimOnly(ctx, o, had[o.key])}}, nil
	})
	return slices.DeleteFunc(claims, func(one answer[object, result]) bool { return one.found.claim == nil })
}

// heirs are who claims an installation's members, by the objects' uids: a claim may be left on record after its object.
type heirs map[types.UID]*modulesv1.Inventory

// findHeirs finds the living claims to members of the installation with the id.
func findHeirs(ctx context.Context, records Records, id string) (heirs, error) {
	claiming, err := records.List(ctx, "", claimLabel(id))
	if err != nil {
		return nil, fmt.Errorf("find out who claims what is to be removed: %w", err)
	}
	found := heirs{}
	for i := range claiming {
		data := &claiming[i].Data
		if !claiming[i].DeletionTimestamp.IsZero() || data.Phase == modulesv1.PhaseDeleting || data.Phase == modulesv1.PhaseOrphaning {
			continue
		}
		for j := range data.Members {
			if m := &data.Members[j]; m.Claimed {
				found[types.UID(m.UID)] = &claiming[i]
			}
		}
	}
	return found, nil
}

// bequeath hands a member over to whoever claims it, in one request: labels and fields are the heir's from then on.
func (r *removal) bequeath(ctx context.Context, ref cluster.Ref, live *metav1.PartialObjectMetadata) error {
	to := r.heirs[live.UID]
	manager := Manager(to.Data.InstallationUID)
	entries := cluster.Inherit(live.ManagedFields, manager, func(entry cluster.Entry) bool { return entry.Manager == r.manager })
	if entries == nil {
		entries = live.ManagedFields
	}
	_, err := r.client.Manage(ctx, ref, versionOf(live), cluster.Management{
		Entries: entries, Labels: labelsOf(to.Name, to.Namespace), Manager: manager,
	})
	return err
}
