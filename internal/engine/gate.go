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

// gateAgain is how soon a gate is tried again if no event tells that it opened.
const gateAgain = 500 * time.Millisecond

// gates says whether CRDs that were applied, and of which something is left to apply, are not Established yet. A Namespace
// needs none: it is Active as soon as it is there, and one that is on its way out is an error when it is applied.
func (r *round) gates(ctx context.Context, todo []object) (shut bool, err error) {
	for k, gate := range r.memory.gates {
		if !slices.ContainsFunc(todo, func(o object) bool { return o.GroupVersionKind().GroupKind() == gate.defines }) {
			continue
		}
		if r.over(ctx) != nil {
			return false, late(StageApply)
		}
		status, message := health.InProgress, "is gone again"
		switch live, err := r.client.Get(ctx, gate.ref); {
		case err == nil:
			status, message = (&health.Checker{}).Check(live)
		case !errors.Is(err, cluster.ErrNotFound):
			return false, failure.At(StageApply, err)
		}
		if status != health.Current {
			shut = true
			r.out.waitFor(gate.ref, message)
			continue
		}
		delete(r.memory.gates, k)
		r.engine.parts.Connector.Refresh()
	}
	if shut {
		r.out.again(gateAgain)
	}
	return shut, nil
}

// overdue is the failure of gates that should have opened by now.
func (r *round) overdue() error {
	if r.engine.clock.Now().Sub(r.record.Data.Attempt.StartedAt.Time) < r.in.Spec.GetTimeout() {
		return nil
	}
	var late []memberError
	for _, problem := range r.out.Waiting {
		late = append(late, memberError{problem.Ref, fmt.Errorf("%s, which others need, is not ready: %s", describe(problem.Ref), problem.Message)})
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, late)
}

// gate is a CRD that was applied, and the kind that it defines.
type gate struct {
	ref     cluster.Ref
	defines schema.GroupKind
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

// defines says that a CRD in the release serves the kind in this version, so that it is there before long.
func (r *render) defines(gvk schema.GroupVersionKind) bool {
	for _, o := range r.objects {
		if found, ok := defined(o.Unstructured); ok && found == gvk.GroupKind() {
			return serves(o.Unstructured, gvk.Version)
		}
	}
	return false
}

func serves(crd *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["name"] == version && fields["served"] == true
	})
}
