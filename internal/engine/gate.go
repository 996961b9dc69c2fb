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

// gates says whether objects that were applied, and that some of what is left to apply needs to work, do not yet: CRDs
// that are not Established. Nobody waits for them here. A Namespace is Active as soon as it is there, and one that is
// on its way out is an error when it is applied.
func (r *round) gates(ctx context.Context, todo []object) (shut bool, err error) {
	for k, gate := range r.memory.gates {
		if !needed(gate, todo) {
			continue
		}
		if r.over(ctx) != nil {
			return false, late(StageApply)
		}
		live, err := r.client.Get(ctx, gate.ref)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			shut = true
			r.waitFor(gate.ref, "is gone again")
			continue
		case err != nil:
			return false, failure.At(StageApply, err)
		}
		if status, message := r.engine.conventions.Check(live); status != health.Current {
			shut = true
			r.waitFor(gate.ref, message)
			continue
		}
		delete(r.memory.gates, k)
		r.engine.parts.Connector.Refresh()
	}
	if shut {
		r.again(gateAgain)
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

// shutBehind notes that an object was applied that others may have to wait for.
func (mem *memory) shutBehind(o object) {
	if kind, ok := defined(o.Unstructured); ok {
		mem.gates[o.key] = gate{refOfObject(o.Unstructured), kind}
	}
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

func needed(g gate, todo []object) bool {
	return slices.ContainsFunc(todo, func(o object) bool { return o.GroupVersionKind().GroupKind() == g.defines })
}

// definedByAim says that a CRD in the release serves the kind in this version, so that it is there before long.
func (r *round) definedByAim(gvk schema.GroupVersionKind) bool {
	for _, o := range r.aim.render.objects {
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
