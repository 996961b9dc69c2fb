package packages

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// copying is a variant of a namespace that makes one package of another in the Repository mono, made at that second.
func copying(namespace, from, to string, second int64) *packagesv1.PackageVariant {
	v := &packagesv1.PackageVariant{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("v-%d", second), CreationTimestamp: metav1.Time{Time: time.Unix(second, 0)},
	}}
	v.Spec.Upstream = packagesv1.Upstream{Repo: "mono", Package: from}
	v.Spec.Downstream = packagesv1.Downstream{Repo: "mono", Package: to}
	return v
}

// circling has the variants, and Repositories of one Git repository in the namespaces. Listed counts the variants that were listed.
func circling(t *testing.T, listed *int, namespaces []string, variants ...*packagesv1.PackageVariant) Shared {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := packagesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&packagesv1.PackageVariant{}, upstreamIndex, func(obj client.Object) []string {
		v, _ := obj.(*packagesv1.PackageVariant)
		return upstreamValues(v)
	}).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if found, ok := list.(*packagesv1.PackageVariantList); ok {
				*listed += len(found.Items)
			}
			return err
		},
	})
	for _, v := range variants {
		builder.WithObjects(v)
	}
	s := Shared{Shell: kernel.Shell{Client: builder.Build()}, Plane: NewPlane()}
	for _, namespace := range namespaces {
		key := types.NamespacedName{Namespace: namespace, Name: "mono"}
		s.mirrors.put(&mirror{Repository: &pkgrepo.Repository{}, key: key, url: "https://git.example/mono", branch: "main"})
	}
	return s
}

// check is what checkCircle says of a variant.
func (s Shared) check(t *testing.T, v *packagesv1.PackageVariant) error {
	t.Helper()
	m := s.mirrors.get(types.NamespacedName{Namespace: v.Namespace, Name: "mono"})
	return s.checkCircle(t.Context(), v, &brief{up: m, down: m, upstream: v.Spec.Upstream.Package, downstream: v.Spec.Downstream.Package})
}

// TestTheSearchForACircleLooksAtEachVariantOnce, also if many variants are made of the output of many others.
func TestTheSearchForACircleLooksAtEachVariantOnce(t *testing.T) {
	t.Parallel()
	const many = 100
	var variants []*packagesv1.PackageVariant
	for i := range int64(many) {
		variants = append(variants, copying("a", "own", fmt.Sprintf("b/%d", i), 1+2*i), copying("a", "b", fmt.Sprintf("c/%d", i), 2+2*i))
	}
	listed, own := 0, copying("a", "first", "own", 1_000)
	s := circling(t, &listed, []string{"a"}, variants...)
	if err := s.check(t, own); err != nil || listed > 10*many {
		t.Errorf("%v, and %d variants were listed", err, listed)
	}
	if err := circling(t, &listed, []string{"a"}, append(variants, copying("a", "c", "first", 999))...).check(t, own); err == nil {
		t.Error("the circle is not seen")
	}
}

// TestVariantsOfOtherNamespacesRefuseNothingThatTheyDoNotWrite: whoever may read the repositories makes one that would close a circle, and
// which is older than all that come.
func TestVariantsOfOtherNamespacesRefuseNothingThatTheyDoNotWrite(t *testing.T) {
	t.Parallel()
	listed := 0
	s := circling(t, &listed, []string{"victim", "mallory"}, copying("mallory", "b", "a", 1))
	if err := s.check(t, copying("victim", "a", "b", 2)); err != nil {
		t.Errorf("a variant without anything in Git refuses another namespace's: %v", err)
	}
	if err := s.check(t, copying("mallory", "a", "b", 2)); err == nil {
		t.Error("in its own namespace it counts")
	}
	f := upstream.ForTest(t)
	f.Repository("mono").Commit("main", "written", upstream.Text(map[string]string{
		"a/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n  annotations: {packages.sluice.dev/variant: mallory/v-1}\n",
	}))
	connections := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(connections.Close)
	client, err := git.New(git.Options{Transport: connections, TempDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m := s.mirrors.get(types.NamespacedName{Namespace: "mallory", Name: "mono"})
	m.Repository = pkgrepo.New(client, pkgrepo.Options{}).Repository(pkgrepo.Settings{Fetch: git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("mono")}})
	if _, _, err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.check(t, copying("victim", "a", "b", 2)); err == nil {
		t.Error("one that has written its package is not seen")
	}
}
