package cluster_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestDeleteIsOneCallForOneLife(t *testing.T) {
	t.Parallel()
	subject, count := admin(t)
	manifest := configMap(t, env.NewNamespace(t), "me", "1")
	applied := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	ref := refTo(manifest, applied)
	stranger, nameless := ref, ref
	stranger.UID, nameless.UID = "00000000-0000-0000-0000-000000000000", ""
	cases := []struct {
		reason  string
		ref     cluster.Ref
		version string
		want    error
		gone    bool
		calls   map[string]int
	}{
		{"without a uid it could be somebody else's", nameless, "", cluster.ErrInvalid, false, map[string]int{}},
		{"another life of the name", stranger, "", cluster.ErrChanged, false, map[string]int{"delete": 1}},
		{"another version", ref, "1", cluster.ErrChanged, false, map[string]int{"delete": 1}},
		{"the very object", ref, applied.ResourceVersion, nil, true, map[string]int{"delete": 1}},
		{"it is gone already", ref, "", nil, true, map[string]int{"delete": 1}},
	}
	for _, tc := range cases {
		count.wantCalls(t, tc.calls, func() {
			gone, err := subject.Delete(t.Context(), tc.ref, tc.version)
			if gone != tc.gone || !errors.Is(err, tc.want) {
				t.Errorf("%s: gone %t, %v; want gone %t, %v", tc.reason, gone, err, tc.gone, tc.want)
			}
		})
	}
}

func TestDeleteWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	manifest := configMap(t, env.NewNamespace(t), "me", "1")
	manifest.SetFinalizers([]string{"example.com/hold"})
	ref := refTo(manifest, apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager}))
	for range 2 {
		if gone, err := subject.Delete(t.Context(), ref, ""); gone || err != nil {
			t.Errorf("want it held, got gone %t, %v", gone, err)
		}
	}
	if again := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager}); !again.Deleting {
		t.Errorf("an object on its way out is not said to be: %+v", again)
	}
}

// TestReleaseEndsOnesPart: what is left of the version that was seen are others' labels, fields and entries.
func TestReleaseEndsOnesPart(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"Alone": false, "Shared": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject, count := admin(t)
			manifest := configMap(t, env.NewNamespace(t), "me", "1")
			manifest.SetLabels(map[string]string{cluster.PartOf: "me", "keep": "this"})
			apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
			ref := refTo(manifest, cluster.Applied{})
			if shared {
				theirs := client.RawPatch(types.MergePatchType, []byte(`{"data":{"theirs":"x"}}`))
				if err := env.Client.Patch(t.Context(), manifest.DeepCopy(), theirs, client.FieldOwner("them")); err != nil {
					t.Fatal(err)
				}
			}
			live, err := subject.Metadata(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			labels := []string{cluster.PartOf, "not/there"}
			changed := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
				other := live.DeepCopy()
				change(other)
				return other
			}
			absent := ref
			absent.Name = "absent"
			count.wantCalls(t, map[string]int{"patch": 4}, func() {
				stale := changed(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "1" })
				if err := subject.Release(t.Context(), ref, stale, manager, labels); !errors.Is(err, cluster.ErrChanged) {
					t.Errorf("a stale version: want ErrChanged, got %v", err)
				}
				stranger := changed(func(o *metav1.PartialObjectMetadata) { o.UID = "00000000-0000-0000-0000-000000000000" })
				if err := subject.Release(t.Context(), ref, stranger, manager, labels); !errors.Is(err, cluster.ErrChanged) {
					t.Errorf("another life: want ErrChanged, got %v", err)
				}
				if err := subject.Release(t.Context(), absent, live, manager, labels); !errors.Is(err, cluster.ErrNotFound) {
					t.Errorf("an object that is not there: want ErrNotFound, got %v", err)
				}
				if err := subject.Release(t.Context(), ref, live, manager, labels); err != nil {
					t.Errorf("the version seen: %v", err)
				}
			})
			unknown := changed(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "" })
			if err := subject.Release(t.Context(), ref, unknown, manager, labels); !errors.Is(err, cluster.ErrInvalid) {
				t.Errorf("no version: want ErrInvalid, got %v", err)
			}
			after, err := subject.Get(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"keep": "this"}, after.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			data := map[string]any{"key": "1"}
			var managers []string
			if shared {
				data["theirs"], managers = "x", []string{"them"}
			}
			var left []string
			for _, entry := range after.GetManagedFields() {
				left = append(left, entry.Manager)
			}
			if diff := cmp.Diff(data, after.Object["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(managers, left); diff != "" {
				t.Errorf("managers (-want +got):\n%s", diff)
			}
		})
	}
}
