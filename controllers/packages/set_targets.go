package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fanout"
)

// maxTargets bounds the targets of a set.
const maxTargets = lookups.MaxTargets

// finding finds the targets of a set.
type finding struct {
	shared Shared
	obj    *packagesv1.PackageVariantSet
	// repositories are those of the namespace, by name.
	repositories map[string]*packagesv1.Repository
	found        []fanout.Target
	wants        []lookups.Want
	// identity is as whom objects are read, and gates what is read for the gates of a rollout.
	identity cluster.Identity
	gates    map[int]lookups.Want
}

// targets are the places where the set's variants go. The set is told when they change.
func (k *sets) targets(ctx context.Context, obj *packagesv1.PackageVariantSet) (*finding, error) {
	var list packagesv1.RepositoryList
	if err := k.shared.Client.List(ctx, &list, client.InNamespace(obj.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Repositories: %w", err)
	}
	f := &finding{shared: k.shared, obj: obj, gates: map[int]lookups.Want{}, repositories: make(map[string]*packagesv1.Repository, len(list.Items))}
	for i := range list.Items {
		f.repositories[list.Items[i].Name] = &list.Items[i]
	}
	err := f.watch()
	if err != nil {
		return f, err
	}
	watched := 0
	for i := range obj.Spec.Targets {
		t := &obj.Spec.Targets[i]
		switch {
		case t.ObjectSelector != nil:
			err = f.objects(ctx, i, f.wants[watched])
			watched++
		case t.RepositorySelector != nil:
			err = f.selected(i, t.RepositorySelector)
		default:
			f.named(i, t.Repositories)
		}
		if err == nil && len(f.found) > maxTargets {
			err = failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("the set has more than %d targets; make several of it", maxTargets))
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// watch has the set told of objects that are selected, or gates. Whoever watches before reading misses nothing.
func (f *finding) watch() error {
	f.identity = cluster.Identity{Namespace: f.obj.Namespace, ServiceAccount: cmp.Or(f.obj.Spec.ServiceAccountName, f.shared.DefaultServiceAccount)}
	for i := range f.obj.Spec.Targets {
		selector := f.obj.Spec.Targets[i].ObjectSelector
		if selector == nil {
			continue
		}
		want, err := f.want(selector)
		if err != nil {
			return fmt.Errorf("spec.targets[%d].objectSelector: %w", i, err)
		}
		f.wants = append(f.wants, want)
	}
	if err := f.watchGates(); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(f.obj)
	f.shared.SetLookups.Watch(key, f.identity, f.wants)
	f.shared.Gates.Watch(key, f.identity, slices.Collect(maps.Values(f.gates)))
	return nil
}

func (f *finding) want(s *packagesv1.ObjectSelector) (want lookups.Want, err error) {
	if f.identity.ServiceAccount == "" {
		return want, failure.Stall(packagesv1.ServiceAccountMissingReason, errors.New(
			"nobody may read the object; set spec.serviceAccountName to a ServiceAccount that may get, list and watch it"))
	}
	version, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil {
		return want, failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("apiVersion: %w", err))
	}
	want.GVK, want.Name = version.WithKind(s.Kind), s.Name
	if want.Selector, err = metav1.LabelSelectorAsSelector(&s.LabelSelector); err != nil {
		return want, failure.Stall(packagesv1.InvalidSpecReason, err)
	}
	want.Namespace, err = f.shared.SetLookups.Place(f.identity, want.GVK, f.obj.Namespace)
	return want, err
}

// objects are targets that are objects of the cluster. Each goes to the Repository of its name.
func (f *finding) objects(ctx context.Context, index int, want lookups.Want) error {
	objects, err := f.shared.SetLookups.List(ctx, f.identity, want)
	if apierrors.IsForbidden(err) {
		return failure.Retry(packagesv1.TargetsForbiddenReason, fmt.Errorf("spec.targets[%d]: %w", index, err))
	}
	if errors.Is(err, lookups.ErrTooMany) {
		// No edit is needed where objects go.
		return failure.Retry(packagesv1.InvalidSpecReason, fmt.Errorf("spec.targets[%d]: %w", index, err))
	}
	if err != nil {
		return fmt.Errorf("spec.targets[%d]: %w", index, err)
	}
	for _, o := range objects {
		seen := fanout.Seen(o.Name, o.Namespace, o.Labels, o.Annotations)
		maps.Copy(seen, o.Fields)
		f.add(index, want.GVK.Kind, o.Name, "", o.Labels, seen)
		f.found[len(f.found)-1].Err = o.Err
	}
	return nil
}

// selected are targets that are Repositories with labels.
func (f *finding) selected(index int, selector *metav1.LabelSelector) error {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("spec.targets[%d].repositorySelector: %w", index, err))
	}
	for name, r := range f.repositories {
		if r.DeletionTimestamp.IsZero() && selects.Matches(labels.Set(r.Labels)) {
			f.add(index, packagesv1.RepositoryKind, name, "", r.Labels, seenOf(r))
		}
	}
	return nil
}

// named are targets that the spec names. What expressions see of them is that alone.
func (f *finding) named(index int, repositories []packagesv1.RepositoryTarget) {
	for _, r := range repositories {
		var labels map[string]string
		if known := f.repositories[r.Name]; known != nil {
			labels = known.Labels
		}
		names := r.PackageNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			f.add(index, packagesv1.RepositoryKind, r.Name, name, labels, map[string]any{"repo": r.Name, "package": cmp.Or(name, f.obj.Spec.Upstream.Package)})
		}
	}
}

func (f *finding) add(index int, kind, name, pkg string, labels map[string]string, seen map[string]any) {
	f.found = append(f.found, fanout.Target{
		Index: index, Name: kind + " " + name, Repo: name, Package: cmp.Or(pkg, f.obj.Spec.Upstream.Package), Value: seen, Labels: labels,
	})
}

// seen is what expressions see of a Repository.
func (f *finding) seen(name string) (map[string]any, bool) {
	r := f.repositories[name]
	if r == nil {
		return nil, false
	}
	return seenOf(r), true
}

func seenOf(r *packagesv1.Repository) map[string]any {
	return fanout.Seen(r.Name, r.Namespace, r.Labels, r.Annotations)
}

// upstream is what expressions see of the package that is cloned.
func (f *finding) upstream() map[string]any {
	up := f.obj.Spec.Upstream
	seen, _ := f.seen(up.Repo)
	if seen == nil {
		seen = fanout.Seen(up.Repo, f.obj.Namespace, nil, nil)
	}
	seen["repo"], seen["package"] = up.Repo, up.Package
	return seen
}

// WakeSet has a set looked at, also where it is named for one of its variants.
func (p *Plane) WakeSet(key types.NamespacedName) { p.sets.wake(objectOf(key)) }
