package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/variant"
)

// injectors are those of the spec. Without any, the object that fills a point is called as the target is: the downstream
// repository.
func injectors(obj *packagesv1.PackageVariant) []variant.Injector {
	if len(obj.Spec.Injectors) == 0 {
		return []variant.Injector{{Namespace: obj.Namespace, Name: obj.Spec.Downstream.Repo}}
	}
	all := make([]variant.Injector, 0, len(obj.Spec.Injectors))
	for _, i := range obj.Spec.Injectors {
		all = append(all, variant.Injector{
			Group: i.Group, Version: i.Version, Kind: i.Kind, Point: i.Point, Name: i.Name, AllowSecrets: i.AllowSecrets,
			Namespace: cmp.Or(i.Namespace, obj.Namespace), Selects: i.Name == "" && i.LabelSelector != nil,
		})
	}
	return all
}

// fill reads what fills points of injection and slots, as the variant's ServiceAccount, and has the variant told of changes. It
// returns what became of all bindings: those that have no point change nothing, and are not in the configuration.
func (k *variants) fill(ctx context.Context, obj *packagesv1.PackageVariant, marks variant.Marks, config *variant.Config) ([]variant.Bound, error) {
	key := client.ObjectKeyFromObject(obj)
	bindings, err := bindings(obj, marks.Slots)
	if err != nil {
		return nil, err
	}
	account := cmp.Or(obj.Spec.ServiceAccountName, k.shared.DefaultServiceAccount)
	switch reads := len(marks.Points) > 0 || slices.ContainsFunc(bindings, binding.isRead); {
	case !reads:
		k.shared.Lookups.Forget(key)
	case account == "":
		return nil, failure.Stall(packagesv1.ServiceAccountMissingReason, errors.New(
			"the package has points that objects of the cluster fill; set spec.serviceAccountName to a ServiceAccount that may read them"))
	}
	identity, given := cluster.Identity{Namespace: obj.Namespace, ServiceAccount: account}, injectors(obj)
	found, all := map[variant.Lookup]variant.Found{}, variant.Lookups(marks.Points, given)
	wants := make([]lookups.Want, len(all), len(all)+len(bindings))
	for i, lookup := range all {
		if wants[i], err = k.want(identity, obj, lookup); err != nil {
			return nil, err
		}
	}
	if wants, err = k.bindingWants(identity, obj, bindings, wants); err != nil {
		return nil, err
	}
	if len(wants) > 0 {
		// Whoever watches before reading misses nothing.
		k.shared.Lookups.Watch(key, identity, wants)
	}
	for i, lookup := range all {
		if found[lookup], err = k.read(ctx, identity, wants[i]); err != nil {
			return nil, err
		}
	}
	config.Sources = variant.Sources(marks.Points, given, found)
	return k.bind(ctx, identity, bindings, config)
}

// want is what is to be read for a lookup.
func (k *variants) want(identity cluster.Identity, obj *packagesv1.PackageVariant, lookup variant.Lookup) (lookups.Want, error) {
	want := lookups.Want{GVK: schema.GroupVersionKind{Group: lookup.Group, Version: lookup.Version, Kind: lookup.Kind}, Name: lookup.Name}
	var err error
	if want.Namespace, err = k.shared.Lookups.Place(identity, want.GVK, lookup.Namespace); err != nil || want.Name != "" {
		return want, err
	}
	if want.Selector, err = metav1.LabelSelectorAsSelector(obj.Spec.Injectors[lookup.Injector].LabelSelector); err != nil {
		return want, failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("spec.injectors[%d].labelSelector: %w", lookup.Injector, err))
	}
	return want, nil
}

// read reads what is wanted. That the identity may not is a finding, and no error: it is told at the point.
func (k *variants) read(ctx context.Context, identity cluster.Identity, want lookups.Want) (variant.Found, error) {
	objects, err := k.shared.Lookups.Read(ctx, identity, want)
	if errors.Is(err, cluster.ErrForbidden) {
		return variant.Found{Refusal: err.Error()}, nil
	}
	if err != nil {
		return variant.Found{}, err
	}
	var found variant.Found
	for _, object := range objects {
		found.Objects = append(found.Objects, variant.Object{Namespace: object.GetNamespace(), Name: object.GetName(), Content: object.Object})
	}
	return found, nil
}
