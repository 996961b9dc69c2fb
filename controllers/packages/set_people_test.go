package packages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestWhatIsPeoplesInASet: some fields of its variants, a variant of theirs that is called as one of its own, and whether it works at
// all. What the template leads to is the set's.
func TestWhatIsPeoplesInASet(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	set := p.set(selects("edge"))
	all := p.spread(set, "a/app", "b/app", "c/app")
	for _, v := range all {
		if !metav1.IsControlledBy(&v, set) {
			t.Errorf("%s does not go with the set: %+v", v.Name, v.OwnerReferences)
		}
	}

	p.patch(&all[0], `{"spec":{"suspend":true,"dryRun":true,"interval":"7h","timeout":"5m","labels":{"mine":"yes"}}}`)
	p.ask(set, func() { set.Spec.Targets[0].Template.Namespace = "elsewhere" })
	until(p, &all[0], "the set's fields are set back, and people's stay", func(v *packagesv1.PackageVariant) (bool, string) {
		want := packagesv1.PackageVariantSpec{
			Upstream: v.Spec.Upstream, Downstream: v.Spec.Downstream, DeletionPolicy: packagesv1.DeletionOrphan, Namespace: "elsewhere", Suspend: true, DryRun: true,
			Interval: &metav1.Duration{Duration: 7 * time.Hour}, Timeout: &metav1.Duration{Duration: 5 * time.Minute}, AdoptionPolicy: v.Spec.AdoptionPolicy, ConflictPolicy: v.Spec.ConflictPolicy,
		}
		diff := cmp.Diff(want, v.Spec)
		return diff == "", diff
	})

	c := &packagesv1.Repository{ObjectMeta: p.meta("c")}
	p.unlabel(c, "edge")
	p.spread(set, "a/app", "b/app")
	theirs := &packagesv1.PackageVariant{ObjectMeta: p.meta(all[2].Name), Spec: packagesv1.PackageVariantSpec{
		Upstream: set.Spec.Upstream, Downstream: packagesv1.Downstream{Repo: "c", Package: "theirs"}, DeletionPolicy: packagesv1.DeletionOrphan,
	}}
	p.create(theirs)
	p.patch(c, `{"metadata":{"labels":{"edge":"yes"}}}`)
	until(p, set, "the name is taken", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.ProblemCount == 1 && s.Status.Problems[0].Target == "targets[0], Repository c" && s.Status.Variants == 2, fmt.Sprintf("%+v", s.Status)
	})
	p.has(set.Status.Problems[0].Message, theirs.Name)
	p.delete(theirs)
	p.spread(set, "a/app", "b/app", "c/app")

	p.ask(set, func() { set.Spec.Suspend, set.Spec.Targets[0].Template.Namespace = true, "nowhere" })
	until(p, set, "it is suspended", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.GetReason(s, "Ready") == packagesv1.SuspendedReason, said(s)
	})
	p.named(map[string]string{"edge": "yes"}, "d")
	p.answered(set, "suspended")
	for _, v := range p.spread(set, "a/app", "b/app", "c/app") {
		if v.Spec.Namespace != "elsewhere" {
			t.Errorf("%s was changed by a set that is suspended", v.Name)
		}
	}
	p.ask(set, func() { set.Spec.Suspend = false })
	p.spread(set, "a/app", "b/app", "c/app", "d/app")
}

// TestObjectsOfNoNamespaceAreTargets of whoever may list them.
func TestObjectsOfNoNamespaceAreTargets(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.named(nil, "there")
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "Namespace", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"of": p.namespace}}},
		Template: &packagesv1.VariantTemplate{
			Downstream: &packagesv1.DownstreamTemplate{Repo: "there", PackageExpr: "'of/' + target.name"}, DeletionPolicy: packagesv1.DeletionOrphan,
		},
	})
	until(p, set, "the right that lacks is named", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.GetReason(s, "Ready") == packagesv1.TargetsForbiddenReason, said(s)
	})
	grants := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.namespace},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: p.namespace}},
		},
	}
	p.create(grants...)
	t.Cleanup(func() {
		for _, obj := range grants {
			if err := env.Client.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
				t.Error(err)
			}
		}
	})
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	p.patch(own, fmt.Sprintf(`{"metadata":{"labels":{"of":%q}}}`, p.namespace))
	p.spread(set, "there/of/"+p.namespace)
	p.patch(own, `{"metadata":{"labels":{"of":null}}}`)
	testenv.Eventually(t, "the guard keeps the only one", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
		return err == nil && set.Status.Unwanted == 1, fmt.Sprintf("%v %+v", err, set.Status)
	})
}
