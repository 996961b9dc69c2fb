package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
)

// Annotations on single objects, in the release's manifests or on what is in the cluster.
const (
	// SSAAnnotation says how its object is applied: 'Ignore' is not at all, and 'IfNotPresent' only to create it.
	SSAAnnotation = cluster.SSAAnnotation
	// ForceAnnotation, with the value 'enabled', is spec.force for its object alone.
	ForceAnnotation = "modules.sluice.dev/force"
)

// ssaIfNotPresent is the value of SSAAnnotation beside cluster.SSAIgnore.
const ssaIfNotPresent = "IfNotPresent"

// annotated checks an object's annotations, and says how it is applied. No error quotes a value: what a variable stands for may come from
// a Secret.
func annotated(o *unstructured.Unstructured) (ssa string, err error) {
	ssa, force := o.GetAnnotations()[SSAAnnotation], o.GetAnnotations()[ForceAnnotation]
	if !slices.Contains([]string{"", cluster.SSAIgnore, ssaIfNotPresent}, ssa) {
		return "", fmt.Errorf("%s has the annotation %s, and its value may be %s or %s", describe(refOfObject(o)), SSAAnnotation, cluster.SSAIgnore, ssaIfNotPresent)
	}
	if !slices.Contains([]string{"", "enabled", "disabled"}, force) {
		return "", fmt.Errorf("%s has the annotation %s, and its value may be enabled or disabled", describe(refOfObject(o)), ForceAnnotation)
	}
	return ssa, nil
}

// isForced says that an object may be deleted and made anew, if it cannot be changed in place.
func isForced(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[ForceAnnotation] == "enabled"
}

// letIgnoredGo lets go of members that the release does not apply any more, by their annotation.
func (r *round) letIgnoredGo(ctx context.Context, made *render) error {
	var released []string
	var failed []memberError
	for m := range every(r.record.Data.Members) {
		if !made.ignored[keyOf(m)] {
			continue
		}
		ref := refOf(m)
		if err := r.letIgnored(ctx, r.client, m); err != nil {
			failed = append(failed, memberError{ref, err})
			continue
		}
		released = append(released, describe(ref))
		r.removed[keyOf(m)] = letGo
	}
	err := joined(StageApply, modulesv1.ApplyFailedReason, failed)
	if len(released) > 0 {
		r.out.note(modulesv1.OrphanedReason, "let go of %s: the release says %s: %s", some(released), SSAAnnotation, cluster.SSAIgnore)
		err = errors.Join(err, r.save(ctx, r.shrink))
	}
	return err
}

// letIgnored lets go of one of them, if it is there and the installation's.
func (r *round) letIgnored(ctx context.Context, client *cluster.Client, m *modulesv1.Member) error {
	ref, live, err := find(ctx, client, refOf(m))
	if err == nil && r.owns(live, m) {
		err = client.Release(ctx, ref, live, r.manager, ours())
	}
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// ignoring are the rules of spec.drift.ignore.
type ignoring []ignoreRule

type ignoreRule struct {
	means func(*unstructured.Unstructured) bool
	paths []string
}

func newIgnoring(rules []modulesv1.DriftIgnore) (ignoring, error) {
	var all ignoring
	for i, one := range rules {
		means, err := build.Selects(*cmp.Or(one.Target, &modulesv1.PatchTarget{}))
		if err != nil {
			return nil, fmt.Errorf("spec.drift.ignore[%d].target: %w", i, err)
		}
		all = append(all, ignoreRule{means, one.Paths})
	}
	return all, nil
}

// split is the object without the fields that others own, and the pointers to those; without any, it is the object itself.
func (all ignoring) split(o *unstructured.Unstructured) (lean *unstructured.Unstructured, paths []string, err error) {
	lean = o
	for _, rule := range all {
		if !rule.means(o) {
			continue
		}
		for _, path := range rule.paths {
			if lean == o {
				lean = o.DeepCopy()
			}
			found, err := leaveOut(lean.Object, cluster.Tokens(path))
			if err != nil {
				return nil, nil, fmt.Errorf("spec.drift.ignore: %s in %s %w", path, describe(refOfObject(o)), err)
			}
			if found && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		return o, nil, nil
	}
	return lean, paths, nil
}

// leaveOut removes a field, if it is there. Items of lists are not removed, as others would have their places then.
func leaveOut(value any, tokens []string) (found bool, err error) {
	for i, token := range tokens {
		last := i == len(tokens)-1
		switch in := value.(type) {
		case map[string]any:
			next, there := in[token]
			if last && there {
				delete(in, token)
			}
			if last || !there {
				return there, nil
			}
			value = next
		case []any:
			at, err := strconv.Atoi(token)
			switch {
			case err != nil || at < 0 || at >= len(in):
				return false, nil //nolint:nilerr // What is no number names no item.
			case last:
				return false, errors.New("is an item of a list: name a field of it")
			}
			value = in[at]
		default:
			return false, nil
		}
	}
	return false, nil
}
