package offers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
)

// sourceIndex finds installations, by the sources that their releases come from, and templates, by the source that they
// refer to: namespace/kind/name.
const sourceIndex = "sourceRef"

func sourceKey(namespace string, ref modulesv1.SourceReference) string {
	return namespace + "/" + ref.Kind + "/" + ref.Name
}

func indexInstallationSources(installation *modulesv1.ModuleInstallation) []string {
	var keys []string
	for _, release := range objects.ReleasesOf(installation) {
		if release.Source != nil {
			keys = append(keys, sourceKey(release.Namespace, *release.Source))
		}
	}
	return keys
}

func indexTemplateSource(template *modulesv1.ModuleTemplate) []string {
	if template.Spec.Artifact.SourceRef == nil {
		return nil
	}
	return []string{sourceKey(template.Namespace, *template.Spec.Artifact.SourceRef)}
}

// IndexFields makes the manager's cache answer the catalogue's questions. It is called once, before anything is set up.
func (o *Offers) IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for field, keys := range map[string]func(*modulesv1.ModuleInstallation) []string{
		keysIndex: indexKeys, homeIndex: indexHome, usesIndex: indexUses, countIndex: indexCount, sourceIndex: indexInstallationSources,
	} {
		if err := index(ctx, indexer, &modulesv1.ModuleInstallation{}, field, keys); err != nil {
			return err
		}
	}
	return index(ctx, indexer, &modulesv1.ModuleTemplate{}, sourceIndex, indexTemplateSource)
}

func index[T client.Object](ctx context.Context, indexer client.FieldIndexer, of T, field string, keys func(T) []string) error {
	err := indexer.IndexField(ctx, of, field, func(obj client.Object) []string {
		typed, _ := obj.(T) // The cache gives what it was asked to index.
		return keys(typed)
	})
	if err != nil {
		return fmt.Errorf("index %s: %w", field, err)
	}
	return nil
}
