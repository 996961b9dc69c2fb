package offers

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/catalog/published"
)

// Release is published.Release from the cache.
func (o *Offers) Release(ctx context.Context, namespace string, chosen catalog.Release) (*modulesv1.ModuleTemplate, modulesv1.Release, error) {
	return published.Release(ctx, o.reader, namespace, chosen)
}

// Artifact is published.Artifact from the cache.
func (o *Offers) Artifact(ctx context.Context, release *modulesv1.Release) (*meta.Artifact, error) {
	return published.Artifact(ctx, o.reader, release)
}

// Source is published.Source from the cache.
func (o *Offers) Source(ctx context.Context, namespace string, ref modulesv1.SourceReference) (objects.Source, error) {
	return published.Source(ctx, o.reader, namespace, ref)
}

// HasExternalArtifacts tells whether the API server serves ExternalArtifacts. A kind that is not served cannot be
// watched; who installs its CRD later starts the process again.
func HasExternalArtifacts(mapper apimeta.RESTMapper) bool {
	_, err := mapper.RESTMapping(sourcev1.GroupVersion.WithKind(sourcev1.ExternalArtifactKind).GroupKind(), sourcev1.GroupVersion.Version)
	return err == nil
}
