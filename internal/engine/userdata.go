package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// rights are what was found about the right to count users' data.
type rights struct {
	// again is when they are asked for once more; zero before the first time.
	again   time.Time
	missing []string
}

// askRights asks, once an attempt, whether the identity may list all users' data: whoever learns only at a deletion that
// it may not has nobody left to ask. The installation goes on without. What is missing is asked for again.
func (r *round) askRights(ctx context.Context) {
	known, now := &r.memory.rights, r.engine.clock.Now()
	if known.again.IsZero() || r.in.Verify || len(known.missing) > 0 && !now.Before(known.again) {
		*known = rights{again: now.Add(r.in.interval())}
		if r.mode() == modulesv1.DeletionBlock {
			known.missing = r.missingRights(ctx)
		}
	}
	r.out.Uncounted = known.missing
}

// missingRights are what the identity may not list, sorted. What cannot be found out is asked with the next attempt.
func (r *round) missingRights(ctx context.Context) (missing []string) {
	// A CRD's name tells its resource.
	resources := map[schema.GroupResource]string{}
	for kind, namespace := range r.managedKinds() {
		if resource, err := r.client.Resource(kind.WithVersion("")); err == nil {
			resources[resource] = namespace
		}
	}
	for _, m := range r.members() {
		if kindOf(&m).GroupKind() == definitionKind() {
			resources[schema.ParseGroupResource(m.Name)] = ""
		}
	}
	for _, one := range each(ctx, r.over, slices.Collect(maps.Keys(resources)), func(resource schema.GroupResource) (bool, error) {
		return r.client.MayList(ctx, resource, resources[resource])
	}) {
		place := " in all namespaces"
		if namespace := resources[one.of]; namespace != "" {
			place = " in namespace " + namespace
		}
		if one.err == nil && !one.found {
			missing = append(missing, one.of.String()+place)
		}
	}
	slices.Sort(missing)
	return missing
}

// reviewRights asks anew, for an attempt that begins, and tells what is missing.
func (r *round) reviewRights(ctx context.Context) {
	r.memory.rights = rights{}
	r.askRights(ctx)
	if missing := r.out.Uncounted; len(missing) > 0 {
		r.out.warn(modulesv1.ForbiddenReason, "%s may not list %s: in mode Block a deletion will not know whether there are users' data, and delete nothing; grant list on them",
			r.in.Identity, strings.Join(missing, ", "))
	}
}

// block counts users' data: objects of the release's managed resources and of the kinds whose definitions would go,
// apart from its members and from the default configuration. While there are any, or while that cannot be found out,
// nothing is removed; it is asked in every round, because new ones can come until the CRDs are gone. A count that takes
// longer than a round goes on in the next one, or it would never end.
func (r *round) block(ctx context.Context) (bool, error) {
	r.watch(r.record.Data.Members) //nolint:contextcheck // Watches outlive the round that asks for them.
	r.out.Deletion.BlockedBy, r.out.Deletion.Unknown = nil, nil
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(StageDelete, failure.Retry(modulesv1.DeletionFailedReason, err))
	}
	kinds, unknown := r.counted(ctx, removal)
	kinds = slices.DeleteFunc(kinds, func(one countedKind) bool { return r.memory.none[one] })
	for _, one := range each(ctx, r.over, kinds, func(one countedKind) (cluster.Instances, error) {
		return r.client.Instances(ctx, one.kind, one.namespace, removal.takes(one.kind))
	}) {
		switch {
		case one.err != nil:
			unknown = append(unknown, one)
		case one.found.Count > 0:
			r.out.Deletion.BlockedBy = append(r.out.Deletion.BlockedBy, blocker(one.of.kind, one.found))
		default:
			r.memory.none[one.of] = true
		}
	}
	asked := len(unknown)
	unknown = slices.DeleteFunc(unknown, func(one count) bool { return errors.Is(one.err, errLate) })
	switch {
	case asked == len(unknown):
		clear(r.memory.none)
	case len(unknown)+len(r.out.Deletion.BlockedBy) == 0:
		return false, late(StageDelete)
	}
	mayPass := func(one count) bool { return !errors.Is(one.err, cluster.ErrForbidden) }
	if len(r.out.Deletion.BlockedBy) == 0 && len(unknown) > 0 && r.lapsed() && !slices.ContainsFunc(unknown, mayPass) {
		// The rights went in the same breath as the installation, and nobody is left to grant them again.
		r.out.Deletion.Mode = modulesv1.DeletionOrphan
		r.out.warn(modulesv1.OrphanedReason, "nothing is deleted, since it cannot be found out whether there are users' data: %v", unknown[0].err)
		return true, nil
	}
	for _, one := range unknown {
		r.out.Deletion.Unknown = append(r.out.Deletion.Unknown, modulesv1.UnknownResource{
			Group: one.of.kind.Group, Kind: one.of.kind.Kind, Message: bounded(r.withoutRights(one.err).Error()),
		})
	}
	err = r.blocked()
	return err == nil, err
}

// blocked is the error of a deletion that users' data keep, and makes the lists of them as long as status can hold.
func (r *round) blocked() error {
	found := &r.out.Deletion
	blocked, unknown := found.BlockedBy, found.Unknown
	found.BlockedBy, found.Unknown = blocked[:min(len(blocked), modulesv1.MaxBlockers)], unknown[:min(len(unknown), modulesv1.MaxBlockers)]
	found.Unlisted = int32(len(blocked) - len(found.BlockedBy) + len(unknown) - len(found.Unknown)) //nolint:gosec // There are no more kinds than members and managed resources.
	switch {
	case len(blocked) > 0:
		return failure.At(StageDelete, failure.Wait(modulesv1.DeletionBlockedReason, r.in.Spec.GetRetryInterval(), fmt.Errorf(
			"users' data is still there, such as %s %s (kinds: %d); delete it, or set deletion.mode to Orphan",
			blocked[0].Kind, blocked[0].Examples[0], len(blocked))))
	case len(unknown) > 0:
		return failure.At(StageDelete, failure.Retry(modulesv1.DeletionUnknownReason, fmt.Errorf(
			"it is not known whether there are users' data of kind %s: %s; with deletion.mode Orphan everything stays", unknown[0].Kind, unknown[0].Message)))
	}
	return nil
}

// countedKind is a kind of users' data, and the namespace that they are counted in; "" for all.
type countedKind struct {
	kind      schema.GroupKind
	namespace string
}

// count is how many objects of a kind there are, or why that is not known.
type count = answer[countedKind, cluster.Instances]

// counted are the kinds of users' data: what the release says, and the kinds of the CRDs that are still to be deleted.
func (r *round) counted(ctx context.Context, removal *removal) (kinds []countedKind, unknown []count) {
	within := r.managedKinds()
	definitions := slices.DeleteFunc(r.remaining(), func(m modulesv1.Member) bool { return kindOf(&m).GroupKind() != definitionKind() })
	for _, ends := range each(ctx, r.over, definitions, func(m modulesv1.Member) (schema.GroupKind, error) { return removal.endsKind(ctx, &m) }) {
		switch {
		case ends.err != nil:
			unknown = append(unknown, count{of: countedKind{kind: definitionKind()}, err: ends.err})
		case !ends.found.Empty():
			within[ends.found] = ""
		}
	}
	for kind, namespace := range within {
		kinds = append(kinds, countedKind{kind, namespace})
	}
	slices.SortFunc(kinds, func(a, b countedKind) int { return strings.Compare(a.kind.String(), b.kind.String()) })
	return kinds, unknown
}

// managedKinds are the kinds that the release says are users' data, with the namespace that they are counted in; "" for
// all, if one of a kind's versions has that.
func (r *round) managedKinds() map[schema.GroupKind]string {
	within := map[schema.GroupKind]string{}
	for _, one := range r.managed() {
		kind := schema.GroupKind{Group: one.Group, Kind: one.Kind}
		if before, known := within[kind]; known && before == "" || one.Scope != modulesv1.ManagedInNamespace {
			within[kind] = ""
			continue
		}
		within[kind] = r.in.Namespace
	}
	return within
}

// endsKind is the kind that a CRD among the members defines; empty if the CRD is not to be deleted.
func (r *removal) endsKind(ctx context.Context, m *modulesv1.Member) (none schema.GroupKind, err error) {
	crd, err := r.client.Get(ctx, refOf(m))
	if errors.Is(err, cluster.ErrNotFound) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	if what, _ := r.known(m, crd).fate(); what != goes {
		return none, nil
	}
	return definedBy(crd), nil
}

// managed are the kinds whose objects are users' data.
func (r *round) managed() []modulesv1.ManagedResource {
	if r.record == nil || r.record.Data.Deletion == nil {
		return nil
	}
	return r.record.Data.Deletion.ManagedResources
}

func blocker(kind schema.GroupKind, found cluster.Instances) modulesv1.DeletionBlocker {
	told := modulesv1.DeletionBlocker{Group: kind.Group, Kind: kind.Kind, Count: int32(min(found.Count, 1<<31-1))} //nolint:gosec // It is bounded right here.
	for _, example := range found.Examples {
		told.Examples = append(told.Examples, strings.TrimPrefix(example.Namespace+"/"+example.Name, "/"))
	}
	return told
}
