package packages_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// losesKinds deletes some of the CustomResourceDefinitions, restores them, and applies the objects that people want.
func (s *sandbox) losesKinds(step sequenceStep) string {
	all := []string{"packagerevisions", "packagevariants", "packagevariantsets", "repositories"}
	var kinds []string
	for i, kind := range all {
		if (step.b%15+1)&(1<<i) != 0 {
			kinds = append(kinds, kind)
		}
	}
	var again []*unstructured.Unstructured
	for _, kind := range kinds {
		crd, made := definition(kind), definition(kind)
		s.check(env.Client.Get(s.Context(), client.ObjectKeyFromObject(crd), crd))
		made.Object["spec"] = crd.Object["spec"]
		made.SetAnnotations(crd.GetAnnotations())
		again = append(again, made)
	}
	s.fleet.accepted = nil
	for _, kind := range kinds {
		s.check(env.Client.Delete(s.Context(), definition(kind)))
	}
	for _, kind := range kinds {
		testenv.Eventually(s.T, kind+" are not served any more", func(ctx context.Context) (bool, string) {
			err := env.Client.Get(ctx, client.ObjectKeyFromObject(definition(kind)), definition(kind))
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	if wrong := s.judge(); wrong != "" {
		return wrong // The check after the step says so again.
	}
	s.create(asObjects(again)...)
	for _, crd := range again {
		testenv.Eventually(s.T, crd.GetName()+" are served again", func(ctx context.Context) (bool, string) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(packagesv1.GroupVersion.WithKind(fmt.Sprint(kindOf(crd, again)) + "List"))
			err := env.Client.List(ctx, list)
			return err == nil, fmt.Sprint(err)
		})
	}
	s.stop()
	s.start()
	return fmt.Sprint(kinds, "; ", s.applies(), s.create1("blueprints"))
}

// create1 makes the blueprints' Repository again, if it is gone.
func (s *sandbox) create1(name string) string {
	return fmt.Sprint(name, " ", client.IgnoreAlreadyExists(env.Client.Create(s.Context(), s.repositoryObject(name))))
}
