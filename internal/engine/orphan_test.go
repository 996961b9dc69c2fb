package engine_test

import (
	"context"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// The account that an installation worked as is gone, and nothing is to be removed any more.
func TestOrphanEndsWithoutRights(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rights []rule
	for _, verb := range []string{"get", "create", "patch", "list", "watch"} {
		rights = append(rights, rule{"", "configmaps", verb})
	}
	r.grant(rights...)
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("installed", settled)

	r.in.Identity.ServiceAccount = "gone"
	r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	r.in.Deleting = true
	var warnings []string
	testenv.Eventually(t, "the installation is let go of", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		for _, note := range out.Notes {
			if note.Reason == modulesv1.OrphanedReason && note.Warning {
				warnings = append(warnings, note.Message)
			}
		}
		if err != nil {
			return false, err.Error()
		}
		return out.Done, ""
	})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "ConfigMap/"+r.namespace+"/a, ConfigMap/"+r.namespace+"/b") {
		t.Errorf("the objects whose labels stay are not named: %q", warnings)
	}
	if left := r.get(configMaps, "a"); left == nil || left.GetLabels()[engine.Label] == "" || r.inventory() != nil {
		t.Errorf("the object is %v, the inventory %v", left, r.inventory())
	}
}
