package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// block counts users' data: objects of the release's managed resources and of the kinds whose definitions would go,
// apart from its members and from the default configuration. While there are any, or while that cannot be found out,
// nothing is removed; it is asked in every round, because new ones can come until the CRDs are gone. A count that takes
// longer than a round goes on in the next one, or it would never end.
func (r *round) block(ctx context.Context) (bool, error) {
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	r.out.Blocked, r.out.Unknown = nil, nil
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(StageDelete, failure.Retry(modulesv1.DeletionFailedReason, err))
	}
	kinds, unknown := r.counted(ctx, removal)
	if r.memory.none == nil {
		r.memory.none = map[countedKind]bool{}
	}
	kinds = slices.DeleteFunc(kinds, func(one countedKind) bool { return r.memory.none[one] })
	counts := each(func() error { return r.over(ctx) }, r.engine.options.Parallel, kinds, func(one countedKind) count {
		found, err := r.client.Instances(ctx, one.kind, one.namespace, removal.takes(one.kind))
		return count{found, err}
	}, func(_ countedKind, err error) count { return count{err: err} })
	for i, one := range kinds {
		switch found := counts[i]; {
		case found.err != nil:
			unknown = append(unknown, kindError{one.kind, found.err})
		case found.Count > 0:
			r.out.Blocked = append(r.out.Blocked, blocker(one.kind, found.Instances))
		default:
			r.memory.none[one] = true
		}
	}
	asked := len(unknown)
	unknown = slices.DeleteFunc(unknown, func(one kindError) bool { return errors.Is(one.err, errLate) })
	switch {
	case asked == len(unknown):
		r.memory.none = nil
	case len(unknown)+len(r.out.Blocked) == 0:
		return false, late(StageDelete)
	}
	if len(r.out.Blocked) == 0 && len(unknown) > 0 && r.lapsed() && !slices.ContainsFunc(unknown, kindError.mayPass) {
		// The rights went in the same breath as the installation, and nobody is left to grant them again.
		r.unentitled = true
		r.warn(modulesv1.OrphanedReason, "nothing is deleted, since it cannot be found out whether there are users' data: %v", unknown[0].err)
		return true, nil
	}
	for _, one := range unknown {
		r.out.Unknown = append(r.out.Unknown, modulesv1.UnknownResource{
			Group: one.kind.Group, Kind: one.kind.Kind, Message: bounded(r.withoutRights(one.err).Error()),
		})
	}
	err = r.blocked()
	return err == nil, err
}

// blocked is the error of a deletion that users' data keep, and makes the lists of them as long as status can hold.
func (r *round) blocked() error {
	blocked, unknown := r.out.Blocked, r.out.Unknown
	r.out.Blocked, r.out.Unknown = blocked[:min(len(blocked), modulesv1.MaxBlockers)], unknown[:min(len(unknown), modulesv1.MaxBlockers)]
	r.out.Unlisted = len(blocked) - len(r.out.Blocked) + len(unknown) - len(r.out.Unknown)
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

// kindError is why the objects of a kind could not be counted.
type kindError struct {
	kind schema.GroupKind
	err  error
}

// mayPass says that something else than a right is missing.
func (e kindError) mayPass() bool { return !errors.Is(e.err, cluster.ErrForbidden) }

// count is how many objects of a kind there are, or why that is not known.
type count struct {
	cluster.Instances

	err error
}

// countedKind is a kind of users' data, and the namespace that they are counted in; "" for all.
type countedKind struct {
	kind      schema.GroupKind
	namespace string
}

// counted are the kinds of users' data: what the release says, and the kinds of the CRDs that are still to be deleted.
func (r *round) counted(ctx context.Context, removal *removal) (kinds []countedKind, unknown []kindError) {
	within := map[schema.GroupKind]string{}
	definitions := slices.DeleteFunc(r.remaining(), func(m modulesv1.Member) bool { return kindOf(&m).GroupKind() != definitionKind() })
	for _, found := range each(func() error { return r.over(ctx) }, r.engine.options.Parallel, definitions, func(m modulesv1.Member) kindError {
		kind, err := r.endsKind(ctx, removal, &m)
		return kindError{kind, err}
	}, func(_ modulesv1.Member, err error) kindError { return kindError{err: err} }) {
		switch {
		case found.err != nil:
			unknown = append(unknown, kindError{definitionKind(), found.err})
		case !found.kind.Empty():
			within[found.kind] = ""
		}
	}
	if recorded := r.record.Data.Deletion; recorded != nil {
		for _, one := range recorded.ManagedResources {
			kind := schema.GroupKind{Group: one.Group, Kind: one.Kind}
			if before, known := within[kind]; known && before == "" || one.Scope != modulesv1.ManagedInNamespace {
				within[kind] = ""
				continue
			}
			within[kind] = r.in.Namespace
		}
	}
	for kind, namespace := range within {
		kinds = append(kinds, countedKind{kind, namespace})
	}
	slices.SortFunc(kinds, func(a, b countedKind) int { return strings.Compare(a.kind.String(), b.kind.String()) })
	return kinds, unknown
}

// endsKind is the kind that a CRD among the members defines; empty if the CRD is not to be deleted.
func (r *round) endsKind(ctx context.Context, removal *removal, m *modulesv1.Member) (none schema.GroupKind, err error) {
	crd, err := r.client.Get(ctx, withUID(refOf(m), ""))
	if errors.Is(err, cluster.ErrNotFound) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	if what, _ := removal.known(m, crd).fate(); what != goes {
		return none, nil
	}
	return definedBy(crd), nil
}

// managed are the kinds whose objects are users' data.
func (r *round) managed() []schema.GroupKind {
	if r.record.Data.Deletion == nil {
		return nil
	}
	var kinds []schema.GroupKind
	for _, kind := range r.record.Data.Deletion.ManagedResources {
		kinds = append(kinds, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	}
	return kinds
}

func blocker(kind schema.GroupKind, found cluster.Instances) modulesv1.DeletionBlocker {
	told := modulesv1.DeletionBlocker{Group: kind.Group, Kind: kind.Kind, Count: int32(min(found.Count, 1<<31-1))} //nolint:gosec // It is bounded right here.
	for _, example := range found.Examples {
		name := example.Name
		if example.Namespace != "" {
			name = example.Namespace + "/" + name
		}
		told.Examples = append(told.Examples, name)
	}
	return told
}
