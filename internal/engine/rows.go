package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// Action is what becomes of an object when a release is installed.
type Action string

const (
	// ActionCreate makes an object that is not there.
	ActionCreate Action = "Create"
	// ActionAdopt takes an object that is there, and was not the installation's.
	ActionAdopt Action = "Adopt"
	// ActionChange changes one of the installation's in place.
	ActionChange Action = "Change"
	// ActionReplace deletes one of the installation's and makes it anew, as it cannot be changed in place.
	ActionReplace Action = "Replace"
	// ActionHandOver gives an object that is no longer needed to another installation, which claims it.
	ActionHandOver Action = "HandOver"
	// ActionRemove deletes an object that is no longer needed.
	ActionRemove Action = "Remove"
	// ActionLetGo leaves one that is no longer needed where it is, without a mark that it was a member.
	ActionLetGo Action = "LetGo"
	// ActionKeep does nothing.
	ActionKeep Action = "Keep"
)

// row is what becomes of an object, as far as the render, the record and the watch tell.
type row struct {
	key    key
	action Action
	// object is what the release has of it; nil where it has nothing, and where nothing had to be rendered to know that
	// it stays as it is.
	object *object
	// member is the object on record; nil for none.
	member *modulesv1.Member
	why    string
}

// rows are what becomes of all objects of the release and on record. What is installed is not rendered: only leftovers
// can go.
func (r *round) rows(ctx context.Context, planned *aim) ([]row, error) {
	known := index(r.members())
	var all []row
	if r.record != nil && r.record.Data.Attempt == nil && r.recorded(planned) {
		for k, m := range known {
			if wanted(m) {
				all = append(all, row{key: k, action: ActionKeep, member: m})
			}
		}
		return r.withLeftovers(ctx, all, nil)
	}
	made, err := r.renders.objects(ctx, planned)
	if err != nil {
		return nil, err
	}
	for i := range made.objects {
		o := &made.objects[i]
		one := row{key: o.key, action: ActionKeep, object: o, member: known[o.key]}
		switch m := one.member; {
		case m == nil || m.UID == "":
			one.action = ActionCreate
		case m.RenderHash != o.hash && !o.once:
			one.action = ActionChange
		}
		all = append(all, one)
	}
	return r.withLeftovers(ctx, all, made.ignored)
}

// withLeftovers adds what becomes of the members that are not among the rows yet. A claim to what another installation has is no
// member.
func (r *round) withLeftovers(ctx context.Context, all []row, ignored map[key]bool) ([]row, error) {
	stays := make(map[key]bool, len(all))
	for _, one := range all {
		stays[one.key] = true
	}
	for m := range every(r.members()) {
		one := row{key: keyOf(m), member: m}
		switch {
		case stays[one.key] || m.Claimed:
			continue
		case ignored[one.key]:
			one.action, one.why = ActionLetGo, fmt.Sprintf("the release says %s: %s", SSAAnnotation, cluster.SSAIgnore)
		case !r.in.Spec.PruneEnabled():
			one.action, one.why = ActionKeep, "spec.prune.enabled is false"
		default:
			what, why, err := r.foreseen(ctx, m)
			if err != nil {
				return nil, err
			}
			one.action, one.why = ActionLetGo, why
			if what == goes {
				one.action = ActionRemove
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.key.kind, b.key.kind), cmp.Compare(a.key.namespace, b.key.namespace),
			cmp.Compare(a.key.name, b.key.name), cmp.Compare(a.key.group, b.key.group))
	})
	return all, nil
}

// foreseen is the fate of a member once no release needs it, as far as the record and the watch tell it: what is in a
// container, and who else claims a member, is found out when it is about to go. Without a watch a member is looked at, for
// a restart must not make another plan.
func (r *round) foreseen(ctx context.Context, m *modulesv1.Member) (fate, string, error) {
	known := r.recordedFacts(m)
	if what, why := known.fate(); what != goes {
		return what, why, nil
	}
	if meta, seen := r.state(m); !seen {
		_, live, err := find(ctx, r.client, refOf(m))
		switch {
		case err == nil:
			known.keptBy = cluster.KeptBy(live)
		case !errors.Is(err, cluster.ErrNotFound) && !errors.Is(err, cluster.ErrNoKind) && !errors.Is(err, cluster.ErrForbidden):
			return goes, "", failure.At(StagePrune, failure.Retry(modulesv1.PruneFailedReason, err))
		}
	} else if meta != nil && meta.Kept {
		known.keptBy = "an annotation"
	}
	what, why := known.fate()
	return what, why, nil
}
