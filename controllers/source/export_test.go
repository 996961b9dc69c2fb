package source

import (
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/generator"
)

// NewGitRepositoryReconciler returns the reconciler of GitRepository objects.
func NewGitRepositoryReconciler(shared Shared, opener source.Opener[*sourcev1.GitRepository]) reconcile.Reconciler {
	return newKernel(gitKind(shared, opener))
}

// NewBucketReconciler returns the reconciler of Bucket objects.
func NewBucketReconciler(shared Shared, opener source.Opener[*sourcev1.Bucket]) reconcile.Reconciler {
	return newKernel(bucketKind(shared, opener))
}

// NewHelmRepositoryReconciler returns the reconciler of HelmRepository objects.
func NewHelmRepositoryReconciler(shared Shared, opener source.Opener[*sourcev1.HelmRepository]) reconcile.Reconciler {
	return newKernel(helmRepositoryKind(shared, opener))
}

// NewHelmChartReconciler returns the reconciler of HelmChart objects.
func NewHelmChartReconciler(shared Shared, opener source.Opener[*sourcev1.HelmChart]) reconcile.Reconciler {
	return newKernel(helmChartKind(shared, opener))
}

// NewArtifactGeneratorReconciler returns the reconciler of ArtifactGenerator objects.
func NewArtifactGeneratorReconciler(shared Shared, maker *generator.Maker) reconcile.Reconciler {
	return newGeneratorKernel(&generators{shared: shared, maker: maker})
}
