package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// twoVersions is a module with a CRD in two versions and an object of the first; second are what the other version
// knows of the spec.
func twoVersions(r *rig, second string) (group string, files map[string]string) {
	group = r.namespace + ".example.com"
	version := func(name string, storage bool, fields string) string {
		return fmt.Sprintf(`  - name: %s
    served: true
    storage: %v
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {%s}}
          status: {type: object, properties: {count: {type: integer}}}
`, name, storage, fields)
	}
	const both = "size: {type: integer}, extra: {type: string}"
	crd := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
`, group) + version("v1", true, both) + version("v2", false, second)
	return group, map[string]string{
		"crd.yaml": crd, "own.yaml": fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: own}\nspec: {size: 1, extra: more}\n", group),
	}
}

// TestStatusInAnotherVersion: a controller that writes the status through another version of the kind is nobody to
// fight with, and costs no request. What such a write drops is noticed when all is verified.
func TestStatusInAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, second string
		lossy          bool
	}{
		"Lossless": {"the versions have the same fields", "size: {type: integer}, extra: {type: string}", false},
		"Lossy":    {"the other version drops a field", "size: {type: integer}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			group, files := twoVersions(r, tc.second)
			r.in.Target = r.target("1.0.0", files)
			r.settle("it is installed", settled)
			r.synced()
			own := func(version string) schema.GroupVersionKind {
				return schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
			}
			count := 0
			write := func() {
				count++
				patch := fmt.Sprintf(`{"status":{"count":%d}}`, count)
				check(t, env.Client.Status().Patch(t.Context(), r.get(own("v2"), "own"),
					client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("controller")))
			}
			if !tc.lossy {
				calls := r.calls(func() {
					for range 20 {
						write()
						if out := r.round(); healed(out) > 0 || len(out.Contested) > 0 {
							t.Fatalf("%s: healed %d, contested: %v", tc.reason, healed(out), out.Contested)
						}
					}
				})
				if calls["apply"] > 0 {
					t.Errorf("%s: %v", tc.reason, calls)
				}
				return
			}
			write()
			// The API server itself cannot apply such an object any more. That is told, not passed over.
			r.in.Verify = true
			_, err := r.engine.Reconcile(t.Context(), r.in)
			if err == nil || failure.Of(err).Reason != modulesv1.ApplyFailedReason || !strings.Contains(err.Error(), ".spec.extra") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestFightOfTwoPrograms: against somebody who changes a member back as soon as it is healed, healing slows down, and it
// is told; once the other one has stopped, the member is healed and stays so.
func TestFightOfTwoPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "ours"))
	r.settle("it is installed", settled)
	r.synced()
	ctx, stop := context.WithCancel(t.Context())
	var wrote atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		key := client.ObjectKey{Namespace: r.namespace, Name: "a"}
		theirs := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"theirs"}}`))
		for ctx.Err() == nil {
			object := &corev1.ConfigMap{}
			if env.Client.Get(ctx, key, object) == nil && object.Data["key"] == "ours" &&
				env.Client.Patch(ctx, object, theirs, client.FieldOwner("rival")) == nil {
				wrote.Add(1)
			}
		}
	}()
	healings := 0
	testenv.Eventually(t, "the fight is noticed", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		if err != nil {
			return false, err.Error()
		}
		healings += healed(out)
		return len(out.Contested) == 1 && healed(out) == 0 && out.Again > 0, fmt.Sprintf("healed %d", healings)
	})
	for range 20 {
		healings += healed(r.round())
	}
	if healings > 4 || wrote.Load() > int64(healings)+1 {
		t.Errorf("healed %d times, while the other one wrote %d times", healings, wrote.Load())
	}
	stop()
	<-ended
	r.clock.SetTime(r.clock.Now().Add(11 * modulesv1.DefaultInterval))
	r.settle("it is healed", func(engine.Outcome) bool {
		return cmp.Equal(r.get(configMaps, "a").Object["data"], map[string]any{"key": "ours"})
	})
}
