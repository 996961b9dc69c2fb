package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// applyOne applies an object: without force first, so that it is known whom something is taken from.
func (r *round) applyOne(ctx context.Context, o object, m *modulesv1.Member) result {
	options := cluster.ApplyOptions{Manager: r.manager()}
	if m != nil {
		options.Before = cluster.Applied{UID: types.UID(m.UID), Fingerprint: m.Fingerprint}
	}
	done := result{object: o}
	done.applied, done.err = r.client.Apply(ctx, o.Unstructured, options)
	if conflict, ok := errors.AsType[*cluster.ConflictError](done.err); ok {
		if conflict.Owner != "" {
			done.notes, done.err = r.handOver(ctx, o, m, conflict)
		} else {
			done.notes, done.rivals, done.err = []Note{taken(conflict)}, managersIn(conflict), nil
		}
		if done.err != nil {
			return done
		}
		options.Force = true
		done.applied, done.err = r.client.Apply(ctx, o.Unstructured, options)
	}
	if errors.Is(done.err, cluster.ErrImmutable) {
		done.applied, done.err = r.recreate(ctx, o, m, options, done.err)
	}
	if done.err == nil && done.applied.Deleting {
		done.err = fmt.Errorf("%s is being deleted, and can be applied once it is gone", describe(refOfObject(o.Unstructured)))
	}
	return done
}

// taken tells who had set the fields that are now taken over.
func taken(conflict *cluster.ConflictError) Note {
	var paths []string
	for _, field := range conflict.Fields[:min(len(conflict.Fields), maxNamed)] {
		paths = append(paths, field.Path)
	}
	return Note{Reason: modulesv1.OwnershipTakenReason, Warning: true, Message: bounded(fmt.Sprintf(
		"took over fields of %s that %s had set: %s", describe(conflict.Ref), strings.Join(managersIn(conflict), ", "), strings.Join(paths, ", ")))}
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

// recreate deletes an object that cannot be changed in place, and applies it again, if the spec asks for that. What may
// hold data, and whatever is not provably this installation's, is not deleted. The answer then stays as it was, and says
// what helps.
func (r *round) recreate(
	ctx context.Context, o object, m *modulesv1.Member, options cluster.ApplyOptions, answer error,
) (cluster.Applied, error) {
	ref := refOfObject(o.Unstructured)
	keeps, err := r.keepsData(ctx, ref)
	switch {
	case err != nil:
		return cluster.Applied{}, err
	case keeps:
		return cluster.Applied{}, fmt.Errorf("%w; it may hold data, so that it is never deleted for this: take the change back, or delete it yourself", answer)
	case !r.in.Spec.Force:
		return cluster.Applied{}, fmt.Errorf("%w; set spec.force to have it deleted and made anew", answer)
	}
	live, err := r.client.Metadata(ctx, ref)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return cluster.Applied{}, err
	case !r.owns(live, m):
		return cluster.Applied{}, fmt.Errorf("%w; it is not certain that this installation made it, so that it is not deleted for this", answer)
	default:
		ref.UID = live.UID
		gone, err := r.client.Delete(ctx, ref, cluster.DeleteOptions{ResourceVersion: live.ResourceVersion})
		if err != nil {
			return cluster.Applied{}, err
		}
		if !gone {
			if _, err := r.client.Metadata(ctx, ref); !errors.Is(err, cluster.ErrNotFound) {
				return cluster.Applied{}, fmt.Errorf("%w; it is being deleted, to be created again: %w", errGoing, answer)
			}
		}
	}
	options.Before = cluster.Applied{}
	return r.client.Apply(ctx, o.Unstructured, options)
}

// keepsData says that deleting the object takes with it what this engine cannot bring back: what its kind holds, users'
// data, or claims that go with it.
func (r *round) keepsData(ctx context.Context, ref cluster.Ref) (bool, error) {
	kind := ref.GVK.GroupKind()
	if holdsData(kind) {
		return true, nil
	}
	if deletion := r.record.Data.Deletion; deletion != nil {
		for _, managed := range deletion.ManagedResources {
			if managed.Group == kind.Group && managed.Kind == kind.Kind {
				return true, nil
			}
		}
	}
	if kind != (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return false, nil
	}
	live, err := r.client.Get(ctx, ref)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return policy == "Delete", nil
}

// errGoing says that an object is on its way out, which will not take long.
var errGoing = errors.New("object is being deleted")

const (
	// goingAgain is how soon an object that is on its way out is looked at again.
	goingAgain = 2 * time.Second
	// watchedAgain is the same where the watch tells its end.
	watchedAgain = time.Minute
)

// holdsData says that deleting an object of the kind takes with it what this engine cannot bring back.
func holdsData(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Group: crdGroup, Kind: crdKind}:
		return true
	}
	return false
}
