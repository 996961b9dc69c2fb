package installation

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/printable"
)

// maxProblem is how long the message of a member's problem is, before its ellipsis.
const maxProblem = 500

// contents are the kinds of the members, for those who may not read the Inventory.
func contents(members []modulesv1.Member) []modulesv1.InventoryContent {
	counts, namespaces := map[schema.GroupVersionKind]int32{}, map[schema.GroupVersionKind]map[string]bool{}
	for i := range members {
		m := &members[i]
		kind := schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}
		counts[kind]++
		if namespaces[kind] == nil {
			namespaces[kind] = map[string]bool{}
		}
		if m.Namespace != "" {
			namespaces[kind][m.Namespace] = true
		}
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	var all []modulesv1.InventoryContent
	for _, kind := range kinds[:min(len(kinds), modulesv1.MaxContents)] {
		names := slices.Sorted(maps.Keys(namespaces[kind]))
		all = append(all, modulesv1.InventoryContent{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Count: counts[kind],
			Namespaces: names[:min(len(names), modulesv1.MaxContentNamespaces)],
		})
	}
	return all
}

// problems are the members that fail, are waited for, or are contested; each stands there once, for the worst of these.
func problems(r round, err error) []modulesv1.MemberProblem {
	failed := engine.Failed(err)
	if stageOf(err) == engine.StageHealth && len(r.outcome.Waiting) > 0 {
		// The error is made of those that are waited for, which know more.
		failed = nil
	}
	found := slices.Concat(failed, r.outcome.Drifted, r.outcome.Waiting, r.outcome.Contested)
	slices.SortStableFunc(found, func(a, b engine.Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Ref.GVK.Group, b.Ref.GVK.Group), cmp.Compare(a.Ref.GVK.Kind, b.Ref.GVK.Kind),
			cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	var all []modulesv1.MemberProblem
	told := map[cluster.Ref]bool{}
	for _, one := range found {
		if told[one.Ref] {
			continue
		}
		if len(all) == modulesv1.MaxProblems {
			break
		}
		told[one.Ref] = true
		all = append(all, modulesv1.MemberProblem{
			Group: one.Ref.GVK.Group, Kind: one.Ref.GVK.Kind, Namespace: one.Ref.Namespace, Name: one.Ref.Name,
			Reason: one.Reason, Message: printable.Line(one.Message, maxProblem),
		})
	}
	return all
}

// rank puts what fails first, and what is contested last.
func rank(problem engine.Problem) int {
	switch problem.Reason {
	case modulesv1.ProgressingReason:
		return 1
	case modulesv1.DriftContestedReason:
		return 2
	default:
		return 0
	}
}

// Ride implements kernel.Rider: what members say of themselves changes all the time while they roll out.
func (k *installations) Ride(before, after *modulesv1.ModuleInstallation) {
	now := after.Status.Problems
	after.Status.Problems = before.Status.Problems
	if !equality.Semantic.DeepEqual(before, after) {
		after.Status.Problems = now
	}
}
