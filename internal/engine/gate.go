package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/failure"
)

// gateAgain is how soon a CRD that objects wait for is looked at again.
const gateAgain = 500 * time.Millisecond

// await tells of CRDs of the release that do not serve their kinds yet, for which objects have to wait, and fails once
// they should. A Namespace needs no waiting: it is Active as soon as it is there, and one that is on its way out is an
// error when it is applied.
func (r *round) await(ctx context.Context, crds map[key]object) error {
	var overdue []memberError
	for _, crd := range crds {
		if r.over(ctx) != nil {
			return late(StageApply)
		}
		ref := refOfObject(crd.Unstructured)
		status, message := health.InProgress, "is gone again"
		switch live, err := r.client.Get(ctx, ref); {
		case err == nil:
			status, message = (&health.Checker{}).Check(live)
		case !errors.Is(err, cluster.ErrNotFound):
			return failure.At(StageApply, err)
		}
		if status == health.Current {
			message = "its kind is not served yet"
			r.engine.parts.Connector.Refresh()
		}
		r.out.waitFor(ref, message)
		r.out.again(gateAgain)
		overdue = append(overdue, memberError{ref, fmt.Errorf("%s, which others need, is not ready: %s", describe(ref), message)})
	}
	if r.engine.clock.Now().Sub(r.record.Data.Attempt.StartedAt.Time) < r.in.Spec.GetTimeout() {
		return nil
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, overdue)
}

// defined is the kind that a CRD defines.
func defined(o *unstructured.Unstructured) (schema.GroupKind, bool) {
	return definedBy(o), o.GroupVersionKind().GroupKind() == definitionKind()
}

func definedBy(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// definition is the CRD in the release that serves the kind in this version, so that it is there before long.
func (r *render) definition(gvk schema.GroupVersionKind) (crd object, found bool) {
	at := slices.IndexFunc(r.objects, func(o object) bool {
		kind, ok := defined(o.Unstructured)
		return ok && kind == gvk.GroupKind() && serves(o.Unstructured, gvk.Version)
	})
	if at < 0 {
		return object{}, false
	}
	return r.objects[at], true
}

func serves(crd *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["name"] == version && fields["served"] == true
	})
}
