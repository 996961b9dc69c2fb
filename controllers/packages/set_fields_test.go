package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestExpressionsSeeTheFieldsThatOperatorsAllow: nothing else of spec and status, and an edit of the list is followed at once.
func TestExpressionsSeeTheFieldsThatOperatorsAllow(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.named(nil, "north", "south")
	claim := func(name, class string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: p.meta(name), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
	}
	p.create(claim("north", "fast"), claim("south", "slow"))
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		Template: &packagesv1.VariantTemplate{
			Downstream: &packagesv1.DownstreamTemplate{PackageExpr: "target.spec.storageClassName"},
			LabelExprs: []packagesv1.MapExpr{{Key: "more", ValueExpr: "has(target.spec.accessModes) ? 'yes' : 'no'"}},
		},
	})
	problems := func(words string) {
		t.Helper()
		until(p, set, "a problem with "+words, func(s *packagesv1.PackageVariantSet) (bool, string) {
			return s.Status.ProblemCount == 2 && strings.Contains(s.Status.Problems[0].Message, words), fmt.Sprintf("%+v", s.Status)
		})
	}
	problems("no such key: spec")
	// A name of the list, and not of a Secret, is all that counts.
	wrong := p.allow(map[string]string{
		"claims":  "- apiVersion: v1\n  kind: PersistentVolumeClaim\n  fields: [spec.storageClassName, metadata.name]\n",
		"secrets": "- apiVersion: v1\n  kind: Secret\n  fields: [spec.storageClassName]\n",
	})
	if len(wrong) != 2 || !strings.Contains(fmt.Sprint(wrong), `data[claims][0]: field "metadata.name"`) || !strings.Contains(fmt.Sprint(wrong), "data[secrets][0]: nothing of a Secret") {
		t.Errorf("the mistakes are told as %v", wrong)
	}
	shows := func(more string) []packagesv1.PackageVariant {
		t.Helper()
		variants := p.spread(set, "north/fast", "south/slow")
		testenv.Eventually(t, "labels say "+more, func(context.Context) (bool, string) {
			variants = p.spread(set, "north/fast", "south/slow")
			return !slices.ContainsFunc(variants, func(v packagesv1.PackageVariant) bool { return v.Spec.Labels["more"] != more }), fmt.Sprint(variants[0].Spec.Labels)
		})
		return variants
	}
	shows("no")
	p.allow(map[string]string{"claims": "- apiVersion: v1\n  kind: PersistentVolumeClaim\n  fields: [spec]\n"})
	before := shows("yes")
	p.allow(nil)
	problems("no such key: spec")
	after := shows("yes")
	for i := range before {
		if before[i].Generation != after[i].Generation {
			t.Errorf("%s changed though its target has a problem", before[i].Name)
		}
	}
}
