package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// maxTries is how often an object that others keep changing is asked for again within a round.
const maxTries = 5

// taker applies objects, one at a time, and takes over what others have of them, as far as that is allowed.
type taker struct {
	owner

	client  *cluster.Client
	records Records
	// force is spec.force, and managed are the kinds whose objects are users' data.
	force   bool
	managed []modulesv1.ManagedResource
}

func (r *round) taker() taker {
	return taker{r.owner, r.client, r.engine.parts.Records, r.in.Spec.Force, r.managed()}
}

// apply applies an object: what is on record in that one life of its name, and anything else only if nothing is there.
// It does so without force first, so that it is known whom something is taken from. An object that changed between two
// requests is asked for anew, for it may belong to somebody else by now.
func (t taker) apply(ctx context.Context, o object, m *modulesv1.Member) (done result, err error) {
	options := cluster.ApplyOptions{Manager: t.manager, Only: t.expected(o, m)}
	if meta := t.seen(m); meta != nil && meta.Ignored {
		done.left, done.hash = true, o.hash
		done.applied = cluster.Applied{Seen: meta.Seen}
		return done, nil
	}
	for range maxTries {
		done = result{}
		done.applied, err = t.begin(ctx, o, &options)
		conflict, _ := errors.AsType[*cluster.ConflictError](err)
		if conflict == nil && !errors.Is(err, cluster.ErrChanged) {
			break
		}
		if o.once {
			return t.leave(ctx, o)
		}
		if err = t.insist(ctx, &done, o, m, conflict, &options); !errors.Is(err, cluster.ErrChanged) {
			break
		}
	}
	if err == nil && done.applied.Strays != nil {
		done.applied, err = t.reclaim(ctx, o, done.applied.Version(), done.applied.Strays, options)
	}
	if errors.Is(err, cluster.ErrInvalid) {
		done.applied, err = t.refused(ctx, o, m, options, err)
	}
	if errors.Is(err, cluster.ErrImmutable) {
		done.unfit = err
		done.applied, err = t.recreate(ctx, o, m, options, err)
	}
	if err == nil && done.applied.Created && len(o.yielded) > 0 {
		done.applied, err = t.yield(ctx, o, done.applied)
	}
	if err == nil && done.applied.Deleting {
		err = fmt.Errorf("%s is being deleted, and can be applied once it is gone", describe(refOfObject(o.Unstructured)))
	}
	if err == nil {
		done.hash = o.hash
	}
	return done, err
}

// begin sends an object: whole if nothing is there, else without the fields that others own, which are yielded first.
func (t taker) begin(ctx context.Context, o object, options *cluster.ApplyOptions) (cluster.Applied, error) {
	if options.Only != cluster.Absent() && len(o.yielded) > 0 {
		yielded, err := t.yield(ctx, o, cluster.Applied{Seen: cluster.Seen{UID: options.Only.UID}})
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			options.Only = cluster.Absent()
		case err != nil:
			return cluster.Applied{}, err
		case yielded.UID == options.Only.UID:
			options.Only = yielded.Version()
		}
	}
	what := o.Unstructured
	if options.Only == cluster.Absent() {
		what = o.whole
	}
	return t.client.Apply(ctx, what, *options)
}

// yield gives up the fields that others own, where this installation has them still.
func (t taker) yield(ctx context.Context, o object, applied cluster.Applied) (cluster.Applied, error) {
	ref := refOfObject(o.Unstructured)
	live, err := t.client.Metadata(ctx, ref)
	if err != nil || live.UID != applied.UID {
		return applied, err
	}
	entries := cluster.Yield(live.ManagedFields, t.manager, o.whole, o.yielded)
	if entries == nil {
		applied.ResourceVersion = live.ResourceVersion
		return applied, nil
	}
	yielded, err := t.client.Manage(ctx, ref, versionOf(live), cluster.Management{Entries: entries, Manager: t.manager})
	yielded.Created, yielded.Made = applied.Created, applied.Made
	return yielded, err
}

// leave leaves an object as it is, because it is there, and only to be created. It is a member if it was made for that.
func (t taker) leave(ctx context.Context, o object) (done result, err error) {
	live, err := t.client.Metadata(ctx, refOfObject(o.Unstructured))
	if err != nil {
		return done, err
	}
	done.left, done.hash, done.foreign = true, o.hash, live.Labels[Label] != t.id || cluster.Fingerprint(live, t.manager) == ""
	done.applied = cluster.Applied{Seen: cluster.See(live), Made: cluster.MadeBy(live, t.manager)}
	return done, nil
}

func versionOf(live *metav1.PartialObjectMetadata) cluster.Version {
	return cluster.Version{UID: live.UID, ResourceVersion: live.ResourceVersion}
}

// expected is what an apply is for, as far as is known without a request: whatever else is there is looked at first.
func (t taker) expected(o object, m *modulesv1.Member) cluster.Version {
	if o.once || m == nil || m.UID == "" || m.Claimed {
		return cluster.Absent()
	}
	if found, known := t.state(m); known && found == nil {
		return cluster.Absent()
	}
	return cluster.Version{UID: types.UID(m.UID)}
}

// insist goes on where an apply was refused: others hold fields, or another object is there than was expected. It is
// forced on the one version that is known not to belong to somebody else: two that take over the same object at once
// would else overwrite each other without a word.
func (t taker) insist(ctx context.Context, done *result, o object, m *modulesv1.Member, conflict *cluster.ConflictError, options *cluster.ApplyOptions) error {
	ref, forced := refOfObject(o.Unstructured), *options
	forced.Force = true
	if conflict != nil {
		done.fields = conflict.Fields
	}
	if conflict != nil && conflict.Owner == "" {
		done.rivals = managersIn(conflict)
		if meta := t.seen(m); meta != nil {
			forced.Only = meta.Version()
			applied, err := t.client.Apply(ctx, o.Unstructured, forced)
			if !errors.Is(err, cluster.ErrChanged) {
				done.applied, done.notes = applied, taken(conflict)
				return err
			}
			// The watch is behind.
		}
	}
	live, err := t.client.Metadata(ctx, ref)
	if errors.Is(err, cluster.ErrNotFound) {
		options.Only = cluster.Absent()
		return fmt.Errorf("%w: %w", cluster.ErrChanged, err)
	}
	if err != nil {
		return err
	}
	right, err := t.may(ctx, o, m, conflict, live)
	if err != nil {
		done.claim = right.claim
		return err
	}
	done.notes, done.adopted = right.notes, right.heirs != nil
	forced.Only = versionOf(live)
	if right.heirs != nil {
		if forced.Only, err = t.inherit(ctx, o, live, right.heirs); err != nil {
			return err
		}
	}
	done.applied, err = t.client.Apply(ctx, o.Unstructured, forced)
	done.applied.Made = right.made || cluster.MadeBy(live, t.manager)
	return err
}

// seen is what the watch has of a member as it is on record; nil when it has nothing.
func (t taker) seen(m *modulesv1.Member) *watch.Meta {
	if meta := t.owner.seen(m); meta != nil && !m.Claimed && string(meta.UID) == m.UID {
		return meta
	}
	return nil
}

// right is what allows to take an object.
type right struct {
	// heirs are the entries whose fields become this installation's, so that those which the release does not have go.
	heirs func(cluster.Entry) bool
	// made says that it was made by an installation, and is handed over with what that means.
	made  bool
	notes []Note
	// claim says which installation lists it, if one does: until it is taken, that one may remove it.
	claim *claim
}

// may says whether the object may be taken, and from whom. One that is on record, or was in an earlier life of the
// installation, is its own; what another installation has is handed over; and all else is as the policy says. A claim
// that nobody has answered is no possession.
func (t taker) may(ctx context.Context, o object, m *modulesv1.Member, conflict *cluster.ConflictError, live *metav1.PartialObjectMetadata) (right, error) {
	ref := refOfObject(o.Unstructured)
	recorded := m != nil && m.UID != "" && m.UID == string(live.UID)
	known := recorded && !m.Claimed
	byEditor := conflict != nil && !strings.HasPrefix(conflict.Owner, ManagerPrefix)
	switch label := live.Labels[Label]; {
	case label != "" && label != t.id && (!known || !byEditor):
		return t.handOver(ctx, o, conflict, live)
	case known, cluster.Fingerprint(live, t.manager) != "":
		return right{made: recorded && !m.Adopted, notes: taken(conflict)}, nil
	case label == t.id && hasManager(live, ManagerPrefix):
		return right{heirs: isBequeathed, made: isMade(live), notes: taken(conflict)}, nil
	case t.policy == modulesv1.AdoptNever:
		return right{}, fmt.Errorf("%s was there before, and spec.adopt is Never: it %w; remove it, or set spec.adopt to IfUnowned", describe(ref), errManaged)
	}
	if who := ManagedBy(live); who != "" && t.policy != modulesv1.AdoptAlways {
		return right{}, fmt.Errorf("%s is managed by %s: it %w; take it out of there, leave it out with a patch in spec.config, or set spec.adopt to Always",
			describe(ref), who, errManaged)
	}
	notes := taken(conflict)
	if notes == nil {
		notes = []Note{{Reason: modulesv1.OwnershipTakenReason, Message: "took over " + describe(ref) + ", which was there before"}}
	}
	return right{heirs: isLegacy, notes: notes}, nil
}

// isBequeathed says that the fields are those of a tool that is given up, or of an installation that needs them no more.
func isBequeathed(entry cluster.Entry) bool {
	return isLegacy(entry) || strings.HasPrefix(entry.Manager, ManagerPrefix)
}

// inherit takes over the fields of others, together with the labels: from then on the object is this installation's,
// whatever happens before the next request.
func (t taker) inherit(ctx context.Context, o object, live *metav1.PartialObjectMetadata, heirs func(cluster.Entry) bool) (cluster.Version, error) {
	entries := cluster.Inherit(live.ManagedFields, t.manager, heirs)
	if entries == nil {
		return versionOf(live), nil
	}
	if yielded := cluster.Yield(entries, t.manager, o.whole, o.yielded); yielded != nil {
		entries = yielded
	}
	applied, err := t.client.Manage(ctx, refOfObject(o.Unstructured), versionOf(live), cluster.Management{
		Entries: entries, Labels: labelsOf(t.name, t.namespace), Manager: t.manager,
	})
	return applied.Version(), err
}

// taken tells who had set the fields that are now taken over; nothing when nobody had.
func taken(conflict *cluster.ConflictError) []Note {
	if conflict == nil {
		return nil
	}
	var paths []string
	for _, field := range conflict.Fields[:min(len(conflict.Fields), maxNamed)] {
		paths = append(paths, field.Path)
	}
	return []Note{{Reason: modulesv1.OwnershipTakenReason, Warning: true, Message: bounded(fmt.Sprintf(
		"took over fields of %s that %s had set: %s", describe(conflict.Ref), strings.Join(managersIn(conflict), ", "), strings.Join(paths, ", ")))}}
}

// managersIn are the managers that hold the fields, quoted, each once.
func managersIn(conflict *cluster.ConflictError) []string {
	var managers []string
	for _, field := range conflict.Fields {
		if name := strconv.Quote(field.Manager); !slices.Contains(managers, name) {
			managers = append(managers, name)
		}
	}
	return managers[:min(len(managers), maxNamed)]
}
