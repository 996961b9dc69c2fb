package packages

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

const (
	// repositoryIndex finds the objects of all kinds that have to do with a Repository.
	repositoryIndex = "spec.repository"
	// sourceIndex finds the Repositories of a GitRepository.
	sourceIndex = "spec.gitRepositoryRef"
	// upstreamIndex finds the variants that follow a package, or a package in its folder.
	upstreamIndex = "spec.upstream"
	// ownerIndex finds the variants of a set by its UID.
	ownerIndex = "metadata.controller"
)

func indexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		kind    client.Object
		name    string
		extract client.IndexerFunc
	}{
		{&packagesv1.PackageRevision{}, repositoryIndex, func(obj client.Object) []string {
			if r, ok := obj.(*packagesv1.PackageRevision); ok {
				return []string{r.Spec.Repository}
			}
			return nil
		}},
		{&packagesv1.PackageVariant{}, repositoryIndex, func(obj client.Object) []string {
			if v, ok := obj.(*packagesv1.PackageVariant); ok && v.Spec.Upstream.Repo != v.Spec.Downstream.Repo {
				return []string{v.Spec.Upstream.Repo, v.Spec.Downstream.Repo}
			} else if ok {
				return []string{v.Spec.Upstream.Repo}
			}
			return nil
		}},
		{&packagesv1.PackageVariant{}, upstreamIndex, func(obj client.Object) []string {
			if v, ok := obj.(*packagesv1.PackageVariant); ok {
				return upstreamValues(v)
			}
			return nil
		}},
		{&packagesv1.PackageVariant{}, ownerIndex, func(obj client.Object) []string {
			if owner := metav1.GetControllerOf(obj); owner != nil {
				return []string{string(owner.UID)}
			}
			return nil
		}},
		{&packagesv1.Repository{}, sourceIndex, func(obj client.Object) []string {
			if r, ok := obj.(*packagesv1.Repository); ok {
				return []string{r.Spec.GitRepositoryRef.Name}
			}
			return nil
		}},
	} {
		if err := indexer.IndexField(ctx, index.kind, index.name, index.extract); err != nil {
			return err
		}
	}
	return nil
}

// users are the variants that have to do with a Repository.
func (k *repositories) users(ctx context.Context, repository types.NamespacedName) ([]packagesv1.PackageVariant, error) {
	var list packagesv1.PackageVariantList
	err := k.shared.Client.List(ctx, &list, client.InNamespace(repository.Namespace), client.MatchingFields{repositoryIndex: repository.Name}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// keptIn are the variants whose packages are in a Repository.
func (k *repositories) keptIn(repository types.NamespacedName) []packagesv1.PackageVariant {
	users, err := k.users(context.Background(), repository)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(users, func(v packagesv1.PackageVariant) bool { return v.Spec.Downstream.Repo != repository.Name })
}
