package engine

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// removal takes members away, or lets go of them.
type removal struct {
	owner

	client *cluster.Client
	// orphan says that everything is let go of.
	orphan bool
	// going are the members that are to go, by their uid, or by their key where that was not written down.
	going      map[types.UID]*modulesv1.Member
	unrecorded map[key]*modulesv1.Member
	// kept are the uids of members that stay: the API server may have an object in more than one group.
	kept map[string]bool
	// created is the default configuration; "" while there is none.
	created types.UID
	heirs   heirs
	// isUnmade says that a member was never made, for certain.
	isUnmade func(*modulesv1.Member) bool
	// over says why nothing new is to be begun.
	over func(context.Context) error
}

// removal is for all members if the installation is to go, and else for those that no release needs.
func (r *round) removal(ctx context.Context) (*removal, error) {
	return r.removalOf(ctx, func(m *modulesv1.Member) bool { return r.in.Deleting || !wanted(m) })
}

// removalOf is for the members of which leaves says that they are to go.
func (r *round) removalOf(ctx context.Context, leaves func(*modulesv1.Member) bool) (*removal, error) {
	var err error
	if r.heirs == nil {
		if r.heirs, err = findHeirs(ctx, r.engine.parts.Records, r.id); err != nil {
			return nil, err
		}
	}
	made := &removal{
		owner: r.owner, client: r.client, orphan: r.out.Deletion.Mode == modulesv1.DeletionOrphan,
		going: map[types.UID]*modulesv1.Member{}, unrecorded: map[key]*modulesv1.Member{}, kept: map[string]bool{},
		heirs: r.heirs, isUnmade: r.memory.isUnmade, over: r.over,
	}
	if created := r.record.Data.DefaultConfigCreated; created != nil {
		made.created = types.UID(created.UID)
	}
	for m := range every(r.record.Data.Members) {
		switch {
		case !leaves(m):
			made.kept[m.UID] = true
		case m.UID == "":
			made.unrecorded[keyOf(m)] = m
		default:
			made.going[types.UID(m.UID)] = m
		}
	}
	return made, nil
}

// remove removes one member. An object that others change meanwhile is looked at anew, for it may belong to somebody
// else by now; a webhook may refuse a deletion with the same answer as a change, so that it is not taken for one for ever.
func (r *removal) remove(ctx context.Context, m modulesv1.Member) (done removed, err error) {
	for range maxTries {
		if done, err = r.once(ctx, &m); !errors.Is(err, cluster.ErrChanged) {
			break
		}
	}
	done.live = nil // There are many members, and it is large.
	return done, err
}

// once removes only what is provably this installation's, and only as it was last seen.
func (r *removal) once(ctx context.Context, m *modulesv1.Member) (removed, error) {
	if m.UID != "" && r.kept[m.UID] {
		return removed{fate: goes, over: true}, nil
	}
	if done, known, err := r.unread(ctx, m); known {
		return done, err
	}
	done, err := r.look(ctx, refOf(m), func(live metav1.Object) facts { return r.known(m, live) })
	switch ref, live := done.ref, done.live; {
	case errors.Is(err, cluster.ErrForbidden) && r.isUnmade(m):
		return removed{fate: goes, over: true}, nil
	case err != nil || done.over || done.fate == held:
		return done, err
	case done.fate == inherited:
		done.heir, err = r.heirs[live.UID], r.bequeath(ctx, ref, live)
	case done.fate == letGo:
		if err = r.client.Release(ctx, ref, live, r.manager, ours()); errors.Is(err, cluster.ErrNotFound) {
			err = nil
		}
	case done.fate == goes:
		return r.delete(ctx, done)
	}
	done.over = err == nil
	return done, err
}

// look finds out what becomes of an object, if it has not gone with its kind, whose CRD is deleted then. What is in one
// that is on its way out makes no difference.
func (r *removal) look(ctx context.Context, ref cluster.Ref, factsOf func(live metav1.Object) facts) (done removed, err error) {
	done.ref, done.live, err = find(ctx, r.client, ref)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return removed{fate: goes, over: true}, nil
	case errors.Is(err, cluster.ErrNoKind):
		found, unknown := r.client.Instances(ctx, ref.GVK.GroupKind(), "", nil)
		if found.Count == 0 && (unknown == nil || !r.orphan) {
			err = unknown
		}
		return removed{fate: goes, over: err == nil}, err
	case err != nil:
		return done, err
	}
	known := factsOf(done.live)
	if done.fate, done.why = known.fate(); done.fate != goes || done.live.DeletionTimestamp != nil {
		return done, nil
	}
	if known.holds, err = r.contents(ctx, done.ref); err == nil {
		done.fate, done.why = known.fate()
	}
	return done, err
}

// delete deletes an object that was looked at, unless it is on its way out.
func (r *removal) delete(ctx context.Context, done removed) (removed, error) {
	if done.live.DeletionTimestamp != nil {
		return done, nil
	}
	var err error
	done.ref.UID = done.live.UID
	done.over, err = r.client.Delete(ctx, done.ref, done.live.ResourceVersion)
	done.deleted = err == nil
	return done, err
}

// unread deletes a member by what the watch has of it, which is what a look would find; if the watch is behind, the
// version says so. It is not known where the object has to be looked at.
func (r *removal) unread(ctx context.Context, m *modulesv1.Member) (done removed, known bool, err error) {
	meta := r.seen(m)
	if meta == nil || string(meta.UID) != m.UID || meta.Kept || r.heirs[meta.UID] != nil || r.orphan || mayHold(kindOf(m).GroupKind()) {
		return done, false, nil
	}
	if done.fate, _ = r.recordedFacts(m).fate(); done.fate != goes || meta.Deleting {
		return done, done.fate == goes, nil
	}
	done.over, err = r.client.Delete(ctx, refOf(m), meta.ResourceVersion)
	done.deleted = err == nil
	return done, !errors.Is(err, cluster.ErrChanged) && !errors.Is(err, cluster.ErrNoKind), err
}

// known are the facts about a member that was looked at, apart from what is in it.
func (r *removal) known(m *modulesv1.Member, live metav1.Object) facts {
	known := r.facts(m, live)
	known.orphan, known.claimed = r.orphan, r.heirs[live.GetUID()] != nil && live.GetDeletionTimestamp() == nil
	return known
}

// contents is what would go with an object, in words. It is asked when what goes before it is gone, so that whatever is
// left stays. That it cannot be found out keeps a Namespace, and a CRD for now.
func (r *removal) contents(ctx context.Context, ref cluster.Ref) (string, error) {
	switch ref.GVK.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		var gone func(schema.GroupKind, *metav1.PartialObjectMetadata) bool
		if r.client.Rehearses() {
			// What goes before the Namespace is there still.
			gone = func(kind schema.GroupKind, item *metav1.PartialObjectMetadata) bool { return r.takes(kind)(item) }
		}
		found, err := r.client.Inhabitant(ctx, ref.Name, gone, func() error { return r.over(ctx) })
		switch {
		case ctx.Err() != nil, errors.Is(err, errLate), errors.Is(err, cluster.ErrUnavailable):
			return "", err
		case err != nil:
			return fmt.Sprintf("it cannot be found out what is in it: %v", err), nil
		case found != nil:
			return describe(*found) + " is in it", nil
		}
	case statefulKind():
		set, err := r.client.Get(ctx, ref)
		if err != nil {
			return "", err
		}
		return claimsOf(set), nil
	case definitionKind():
		crd, err := r.client.Get(ctx, ref)
		if err != nil {
			return "", err
		}
		kind := definedBy(crd)
		found, err := r.client.Instances(ctx, kind, "", r.takes(kind))
		if err != nil {
			return "", err
		}
		if found.Count > 0 {
			return fmt.Sprintf("of its kind there are %s, such as %s", objects(found.Count), describe(found.Examples[0])), nil
		}
	}
	return "", nil
}

// takes says of objects of the kind that they go with the members, and are no users' data. An object that has taken a
// member's name is no member, and one that will be let go of stays.
func (r *removal) takes(kind schema.GroupKind) func(*metav1.PartialObjectMetadata) bool {
	return func(item *metav1.PartialObjectMetadata) bool {
		if r.created != "" && r.created == item.UID {
			// It is nobody's data unless somebody keeps it.
			what, _ := configFacts(kind, item).fate()
			return what == goes
		}
		m := r.going[item.UID]
		if m == nil {
			m = r.unrecorded[key{kind.Group, kind.Kind, item.Namespace, item.Name}]
		}
		if m == nil {
			return false
		}
		what, _ := r.known(m, item).fate()
		return what == goes
	}
}

// find reads the metadata of whatever has the reference's name. A version that the API server has ceased to serve makes
// no difference: the reference comes back in one that it does. An object that does not fit its kind's scope is not
// there: the kind was not known when it was claimed, or its CRD was made anew with another scope.
func find(ctx context.Context, client *cluster.Client, ref cluster.Ref) (cluster.Ref, *metav1.PartialObjectMetadata, error) {
	live, err := client.Metadata(ctx, ref)
	if errors.Is(err, cluster.ErrNoKind) {
		served := client.Preferred(ref)
		if served == ref {
			return ref, nil, err
		}
		ref = served
		live, err = client.Metadata(ctx, ref)
	}
	if errors.Is(err, cluster.ErrScope) {
		err = client.Misplaced(ctx, ref)
	}
	return ref, live, err
}
