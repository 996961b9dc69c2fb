package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// depend is a failure that waits until all that spec.dependsOn names is ready. It is asked before an attempt begins.
func (r *round) depend(ctx context.Context) error {
	if len(r.in.Spec.DependsOn) == 0 {
		return nil
	}
	var missing []string
	r.out.Depends = nil
	for _, one := range r.in.Spec.DependsOn {
		if r.over(ctx) != nil {
			return late(StageDepend)
		}
		ref, err := dependency(r.client, r.in.Namespace, one)
		if err == nil {
			r.out.Depends = append(r.out.Depends, ref)
			err = r.ready(ctx, ref, one.ReadyExpr)
		}
		if err != nil && failure.Of(err).Disposition == failure.Stalls {
			return failure.At(StageDepend, err)
		}
		if err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure.At(StageDepend, failure.Wait(modulesv1.DependencyNotReadyReason, r.in.Spec.GetRetryInterval(),
		errors.New(bounded(strings.Join(missing, "; ")))))
}

// dependency is the object that is meant: in the same namespace, or of a kind that has none.
func dependency(client *cluster.Client, namespace string, d modulesv1.Dependency) (cluster.Ref, error) {
	version, err := schema.ParseGroupVersion(d.APIVersion)
	if err != nil {
		return cluster.Ref{}, failure.Stall(modulesv1.DependencyNotReadyReason, fmt.Errorf("dependsOn: %w", err))
	}
	ref := cluster.Ref{GVK: version.WithKind(d.Kind), Name: d.Name}
	namespaced, err := client.Namespaced(ref.GVK)
	if err != nil && !errors.Is(err, cluster.ErrNoKind) {
		return ref, err
	}
	if namespaced || err != nil {
		ref.Namespace = namespace
	}
	return ref, nil
}

func (r *round) ready(ctx context.Context, ref cluster.Ref, expression string) error {
	readiness, err := r.engine.library.Readiness(expression)
	if err != nil {
		return failure.Stall(modulesv1.DependencyNotReadyReason, fmt.Errorf("dependsOn %s: %w", describe(ref), err))
	}
	dep, err := r.client.Get(ctx, ref)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("%s is missing", describe(ref))
	case err != nil:
		return err
	}
	if ready, message := readiness.Ready(dep, r.in.Self); !ready {
		return fmt.Errorf("%s is not ready: %s", describe(ref), message)
	}
	return nil
}
