package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/view"
)

// drawn is a tree in lines.
func drawn(n *view.Node, depth int) (lines []string) {
	lines = []string{strings.TrimRight(fmt.Sprintf("%s%s %s %d %s %s", strings.Repeat(" ", depth), n.Kind, n.Name, n.Count, n.State, n.Message), " ")}
	for _, u := range n.Under {
		lines = append(lines, drawn(u, depth+1)...)
	}
	return lines
}

func owned(t *testing.T, kind, name, owner, status string) unstructured.Unstructured {
	t.Helper()
	return *read(t, fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, uid: %s, ownerReferences: [{controller: true, uid: %s}]}\nstatus: %s", kind, name, name, owner, status))
}

// workload is a Deployment of which one Pod does not come up, among objects that are well.
func workload(t *testing.T) *view.Node {
	t.Helper()
	checker := &health.Checker{}
	root := &view.Node{Kind: "ModuleInstallation", Name: "foo", State: view.Ready}
	for _, name := range []string{"a", "b", "c"} {
		root.Under = append(root.Under, view.Judged(read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}"), checker))
	}
	deployment := read(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: foo, uid: d, generation: 2}\nstatus: {observedGeneration: 1}")
	root.Under = append(root.Under, view.Judged(deployment, checker))
	running := "{phase: Running, conditions: [{type: Ready, status: 'True'}]}"
	view.Hang(root.Under, []unstructured.Unstructured{
		owned(t, "ReplicaSet", "rs", "d", "{}"), owned(t, "Pod", "p1", "rs", running), owned(t, "Pod", "p2", "rs", running),
		owned(t, "Pod", "p3", "rs", "{phase: Pending, containerStatuses: [{state: {waiting: {reason: ImagePullBackOff, message: No such image}}}]}"),
		owned(t, "Pod", "stranger", "other", running),
		// These own each other, and nobody else has them.
		owned(t, "ReplicaSet", "ring-1", "ring-2", "{}"), owned(t, "ReplicaSet", "ring-2", "ring-1", "{}"), owned(t, "Pod", "lost", "ring-1", running),
	}, func(kind string) bool { return kind != "ReplicaSet" })
	return root
}

// TestTree: what is well is told in few words, and what is not by its name.
func TestTree(t *testing.T) {
	t.Parallel()
	root := workload(t)
	const (
		rollout = " Deployment foo 0 Progressing generation 2 is not observed yet, only 1"
		pod     = "  Pod p3 0 Failed ImagePullBackOff: No such image"
	)
	for name, tc := range map[string]struct {
		tree *view.Node
		want []string
	}{
		"Whole": {root, []string{
			"ModuleInstallation foo 0 Ready", " ConfigMap a 0 Ready", " ConfigMap b 0 Ready", " ConfigMap c 0 Ready", rollout,
			"  Pod p1 0 Ready", "  Pod p2 0 Ready", pod,
		}},
		"Folded":   {root.Folded(), []string{"ModuleInstallation foo 0 Ready", " ConfigMap  3 Ready", rollout, "  Pod  2 Ready", pod}},
		"Troubled": {root.Troubled(), []string{"ModuleInstallation foo 0 Ready", rollout, pod}},
		"Cut":      {root.Folded().Cut(1), []string{"ModuleInstallation foo 0 Ready", " ConfigMap  3 Ready", rollout}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, drawn(tc.tree, 0)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if root.Under[0].Troubled() != nil || root.IsWell() {
		t.Error("what is well was taken for trouble, or trouble for well")
	}
}

// TestJudgedWithoutHealth: an object that is healthy by being there is not while it goes.
func TestJudgedWithoutHealth(t *testing.T) {
	t.Parallel()
	for gone, want := range map[string]view.State{"": view.Ready, ", deletionTimestamp: '" + minute + "'": view.Deleting} {
		if got := view.Judged(read(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a"+gone+"}"), &health.Checker{}); got.State != want {
			t.Errorf("is %s, not %s", got.State, want)
		}
	}
}
