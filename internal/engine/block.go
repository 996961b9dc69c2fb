package engine

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// block counts users' data: objects of the release's managed resources and of the kinds whose definitions would go,
// apart from its members and from the default configuration. While there are any, or while that cannot be found out,
// nothing is removed; it is asked in every round, because new ones can come until the CRDs are gone.
func (r *round) block(ctx context.Context) (bool, error) {
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	exclude := r.notUserData()
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if r.stays(m) {
			// It is users' data that the release had taken over.
			continue
		}
		exclude = append(exclude, withUID(refOf(m), ""))
	}
	asked := map[schema.GroupKind]bool{}
	for _, kind := range append(r.managed(), r.definedHere(ctx)...) {
		if asked[kind] {
			continue
		}
		asked[kind] = true
		if err := r.over(ctx); err != nil && len(r.out.Unknown)+len(r.out.Blocked) == 0 {
			return false, late(StageDelete)
		} else if err != nil {
			break
		}
		found, err := r.client.Instances(ctx, kind.Group, kind.Kind, exclude...)
		switch {
		case err != nil:
			r.unknown(kind, err)
		case found.Count > 0:
			r.out.Blocked = append(r.out.Blocked, blocker(kind, found))
		}
	}
	switch {
	case len(r.out.Blocked) > 0:
		first := r.out.Blocked[0]
		return false, failure.At(StageDelete, failure.Wait(modulesv1.DeletionBlockedReason, r.in.Spec.GetRetryInterval(), fmt.Errorf(
			"users' data is still there, such as %s %s (kinds: %d); delete it, or set deletion.mode to Orphan",
			first.Kind, first.Examples[0], len(r.out.Blocked))))
	case len(r.out.Unknown) > 0:
		first := r.out.Unknown[0]
		return false, failure.At(StageDelete, failure.Retry(modulesv1.DeletionUnknownReason, fmt.Errorf(
			"it is not known whether there are users' data of kind %s: %s; with deletion.mode Orphan everything stays", first.Kind, first.Message)))
	}
	r.unblocked = true
	return true, nil
}

func (r *round) unknown(kind schema.GroupKind, err error) {
	r.out.Unknown = append(r.out.Unknown, modulesv1.UnknownResource{
		Group: kind.Group, Kind: kind.Kind, Message: bounded(r.withoutRights(err).Error()),
	})
}

// definedHere are the kinds of the CRDs that are still to be deleted. One that cannot be read is unknown.
func (r *round) definedHere(ctx context.Context) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, m := range r.remaining() {
		if m.Group != crdGroup || m.Kind != crdKind {
			continue
		}
		err := r.over(ctx)
		if err == nil {
			var crd *unstructured.Unstructured
			crd, err = r.client.Get(ctx, withUID(refOf(&m), ""))
			if err == nil && r.owns(crd, &m) && !r.spared(&m, crd) {
				group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
				kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
				kinds = append(kinds, schema.GroupKind{Group: group, Kind: kind})
			}
		}
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			r.unknown(schema.GroupKind{Group: m.Group, Kind: m.Kind}, err)
		}
	}
	return kinds
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
