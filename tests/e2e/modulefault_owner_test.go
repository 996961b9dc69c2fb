package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestModuleObjectGoesToWhoeverNeedsIt: an object that two installations want belongs to the first. When that drops it,
// the second gets the very same object, and either can go without taking it from the other.
func TestModuleObjectGoesToWhoeverNeedsIt(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{
		"shared.yaml": strings.Replace(settings("shared", "1.0.0"), "-${instance}", "", 1), "own.yaml": settings("own", "1.0.0"),
	})
	// What it drops is left where it is, as if it had not come to remove it yet.
	s.install("first", pruning(false))
	s.ready("first", "1.0.0")
	first, err := s.configMap(t.Context(), "shared")
	if err != nil || first == nil {
		t.Fatal(err)
	}
	s.install("second")
	s.failing("second", modulesv1.AppliedCondition, modulesv1.OwnershipConflictReason, "ConfigMap/"+s.namespace+"/shared is a member of the installation "+s.namespace+"/first")
	s.exact("first", "ConfigMap/own-first", "ConfigMap/shared")
	s.sharedIsOnlyOf("first")
	before := len(s.memberCalls())

	s.change("first", without("shared"))
	s.ready("second", "1.0.0")
	s.told("second", corev1.EventTypeNormal, modulesv1.OwnershipTakenReason, s.namespace+"/first")
	s.exact("second", "ConfigMap/own-second", "ConfigMap/shared")
	s.ready("first", "1.0.0")
	s.change("first", pruning(true))
	s.exact("first", "ConfigMap/own-first")
	s.sharedIsOnlyOf("second")
	if deleted := only(s.memberCalls()[before:], verbDelete); len(deleted) > 0 {
		t.Errorf("handed over by\n%s", lines(deleted))
	}

	// It wants it back, and is told; then the second one goes, and takes the object with it: it is made anew.
	s.change("first", without())
	s.failing("first", modulesv1.AppliedCondition, modulesv1.OwnershipConflictReason, s.namespace+"/second")
	s.sharedIsOnlyOf("second")
	taken, err := s.configMap(t.Context(), "shared")
	if err != nil || taken == nil || taken.UID != first.UID {
		t.Errorf("the object was made anew on its way: %s, %v", asJSON(taken), err)
	}
	s.remove("second")
	s.gone("second")
	s.ready("first", "1.0.0")
	s.exact("first", "ConfigMap/own-first", "ConfigMap/shared")
	s.sharedIsOnlyOf("first")
}

// sharedIsOnlyOf waits until nobody else than the installation has a part in the shared ConfigMap.
func (s moduleScene) sharedIsOnlyOf(installation string) {
	s.t.Helper()
	s.eventually("the shared object is only that of "+installation, func(ctx context.Context) (bool, string) {
		obj, err := s.configMap(ctx, "shared")
		if err != nil || obj == nil {
			return false, fmt.Sprint(err)
		}
		managers := map[string]bool{}
		for _, entry := range obj.ManagedFields {
			managers[entry.Manager] = true
		}
		return len(managers) == 1 && obj.Labels[partOf] == s.id(installation), asJSON(obj.ObjectMeta)
	})
}
