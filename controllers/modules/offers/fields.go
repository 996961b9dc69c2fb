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

func indexInstallationSources(obj client.Object) []string {
	installation, ok := obj.(*modulesv1.ModuleInstallation)
	if !ok {
		return nil
	}
	var keys []string
	for _, release := range objects.ReleasesOf(installation) {
		if release.Source != nil {
			keys = append(keys, sourceKey(release.Namespace, *release.Source))
		}
	}
	return keys
}

func indexTemplateSource(obj client.Object) []string {
	template, ok := obj.(*modulesv1.ModuleTemplate)
	if !ok || template.Spec.Artifact.SourceRef == nil {
		return nil
	}
	return []string{sourceKey(template.Namespace, *template.Spec.Artifact.SourceRef)}
}

// IndexFields makes the manager's cache answer the catalogue's questions. It is called once, before anything is set up.
func (o *Offers) IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		obj   client.Object
		field string
		keys  client.IndexerFunc
	}{
		{&modulesv1.ModuleInstallation{}, keysIndex, indexKeys},
		{&modulesv1.ModuleInstallation{}, homeIndex, indexHome},
		{&modulesv1.ModuleInstallation{}, usesIndex, indexUses},
		{&modulesv1.ModuleInstallation{}, countIndex, indexCount},
		{&modulesv1.ModuleInstallation{}, sourceIndex, indexInstallationSources},
		{&modulesv1.ModuleTemplate{}, sourceIndex, indexTemplateSource},
	} {
		if err := indexer.IndexField(ctx, index.obj, index.field, index.keys); err != nil {
			return fmt.Errorf("index %s: %w", index.field, err)
		}
	}
	return nil
}
