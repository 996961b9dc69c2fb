package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// DefaultConfigAnnotation is on an object that was created from a release's default configuration, with the UID of the
// installation: the proof that nobody else made it, should its creation not have been written down.
const DefaultConfigAnnotation = "modules.sluice.dev/default-config-of"

// lacksDefaultConfig says that the release has a default configuration that was not created yet.
func (r *round) lacksDefaultConfig() bool {
	intended := r.record.Data.DefaultConfigCreated
	return r.wantsDefaultConfig() && intended != nil && intended.UID == "" && !intended.Found
}

// wantsDefaultConfig says that the release has a default configuration.
func (r *round) wantsDefaultConfig() bool {
	return r.aim != nil && r.aim.target.DefaultConfig != nil && r.in.Spec.CreatesDefaultConfig()
}

// createdFrom names an object that is going to be created.
func createdFrom(o *unstructured.Unstructured) *modulesv1.CreatedObject {
	return &modulesv1.CreatedObject{
		GroupVersionKind: modulesv1.GroupVersionKind(o.GroupVersionKind()), Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

// defaultObject is the default configuration in the installation's namespace, if it names none and its kind has them.
func (r *round) defaultObject() *unstructured.Unstructured {
	o := r.aim.target.DefaultConfig.DeepCopy()
	namespaced, err := r.client.Namespaced(o.GroupVersionKind())
	inNamespace(o, r.in.Namespace, namespaced || err != nil)
	o.SetAnnotations(labels.Merge(o.GetAnnotations(), map[string]string{DefaultConfigAnnotation: r.in.UID}))
	return o
}

// defaultConfig creates the default configuration. What is there already stays as it is, and the user's, for good.
func (r *round) defaultConfig(ctx context.Context) (bool, error) {
	o := r.defaultObject()
	intended := createdFrom(o)
	if before := r.record.Data.DefaultConfigCreated; *before != *intended {
		// An attempt that was overtaken meant another object, and may have made it before it could say so.
		_, live, err := find(ctx, r.client, refOfCreated(before))
		switch {
		case err == nil && live.Annotations[DefaultConfigAnnotation] == r.in.UID:
			return true, r.decideDefaultConfig(ctx, before, live.UID)
		case err == nil, errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind):
			if err := r.decideDefaultConfig(ctx, intended, ""); err != nil {
				return false, err
			}
		default:
			return false, joined(StageApply, modulesv1.ApplyFailedReason, []memberError{{refOfCreated(before), err}})
		}
	}
	ref := refOfObject(o)
	made, err := r.client.Create(ctx, o, r.manager)
	switch {
	case errors.Is(err, cluster.ErrExists):
		live, err := r.client.Metadata(ctx, ref)
		if err != nil {
			return false, failure.At(StageApply, failure.Retry(modulesv1.ApplyFailedReason, err))
		}
		if intended.Found = live.Annotations[DefaultConfigAnnotation] != r.in.UID; !intended.Found {
			made.UID = live.UID
		}
	case errors.Is(err, cluster.ErrNoKind):
		return false, r.awaitKind(ref)
	case err != nil:
		return false, joined(StageApply, modulesv1.ApplyFailedReason, []memberError{{ref, fmt.Errorf("default configuration: %w", err)}})
	}
	return true, r.decideDefaultConfig(ctx, intended, made.UID)
}

// awaitKind looks again, ever less often, for a kind that is not served, and fails once that takes longer than the
// timeout: nothing else of the release brings it then.
func (r *round) awaitKind(ref cluster.Ref) error {
	passed := r.engine.clock.Now().Sub(r.record.Data.Attempt.AppliedAt.Time)
	r.out.waitFor(ref, "its kind is not served yet")
	r.out.again(min(max(passed/4, gateAgain), r.in.Spec.GetRetryInterval()))
	if passed < r.in.Spec.GetTimeout() {
		return nil
	}
	return failure.At(StageApply, failure.Retry(modulesv1.ApplyFailedReason, fmt.Errorf(
		"default configuration: %s in version %s is not served, %s after the release was applied: install what serves it, set spec.config.defaultConfig to Ignore, or publish a release with another one",
		ref.GVK.GroupKind(), ref.GVK.Version, passed.Round(time.Second))))
}

// decideDefaultConfig writes down which object it is, and its UID once it was created.
func (r *round) decideDefaultConfig(ctx context.Context, object *modulesv1.CreatedObject, uid types.UID) error {
	decided := *object
	decided.UID = string(uid)
	return r.save(ctx, func(data *modulesv1.InventoryData) { data.DefaultConfigCreated = &decided })
}

// leavesDefaultConfig says that a default configuration was created, and does not go with the installation's namespace.
func (r *round) leavesDefaultConfig() bool {
	made := r.record.Data.DefaultConfigCreated
	return made != nil && !made.Found && (!r.homeless || made.Namespace != r.in.Namespace)
}

// deleteDefaultConfig removes the default configuration while what acts on it is still there.
func (r *round) deleteDefaultConfig(ctx context.Context) (gone bool, err error) {
	for range maxTries {
		if gone, err = r.deleteDefaultConfigOnce(ctx); !errors.Is(err, cluster.ErrChanged) {
			break
		}
	}
	if errors.Is(err, cluster.ErrForbidden) && r.lapsed() {
		r.out.warn(modulesv1.OrphanedReason, "let go of the default configuration: %v", err)
		return true, nil
	}
	return gone, r.withoutRights(err)
}

func (r *round) deleteDefaultConfigOnce(ctx context.Context) (bool, error) {
	made := r.record.Data.DefaultConfigCreated
	ref := refOfCreated(made)
	removal, err := r.removal(ctx)
	var done removed
	if err == nil {
		done, err = removal.look(ctx, ref, func(live metav1.Object) facts {
			known := configFacts(ref.GVK.GroupKind(), live)
			known.owned = ref.UID == live.GetUID() || ref.UID == "" && live.GetAnnotations()[DefaultConfigAnnotation] == r.in.UID
			return known
		})
	}
	switch {
	case err == nil && (done.over || done.fate == foreign):
		return true, nil
	case err == nil && done.fate != goes:
		r.out.note(modulesv1.OrphanedReason, "let go of the default configuration %s, which is not deleted: %s", describe(ref), done.why)
		return true, r.save(ctx, func(data *modulesv1.InventoryData) {
			data.DefaultConfigCreated.UID, data.DefaultConfigCreated.Found = "", true
			data.LetGo++
		})
	case err == nil:
		done, err = removal.delete(ctx, done)
	}
	if err != nil {
		return false, joined(StageDelete, modulesv1.DeletionFailedReason, []memberError{{ref, err}})
	}
	if !done.over {
		r.out.waitFor(ref, "is being deleted")
		r.out.again(goingAgain)
	}
	return done.over, nil
}

func refOfCreated(made *modulesv1.CreatedObject) cluster.Ref {
	return cluster.Ref{
		GVK: schema.GroupVersionKind(made.GroupVersionKind), Namespace: made.Namespace, Name: made.Name, UID: types.UID(made.UID),
	}
}
