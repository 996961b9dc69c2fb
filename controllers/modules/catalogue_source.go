package modules

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
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
	for _, release := range releasesOf(installation) {
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
func (c *Catalogue) IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
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
		{&sourcev1.OCIRepository{}, ownerIndex, indexOwner},
		{&sourcev1.GitRepository{}, ownerIndex, indexOwner},
	} {
		if err := indexer.IndexField(ctx, index.obj, index.field, index.keys); err != nil {
			return fmt.Errorf("index %s: %w", index.field, err)
		}
	}
	return nil
}

// sourceChange says which source it is that has changed, and whether in something that counts: what it is pinned to,
// what it has, or whether it fails.
func sourceChange(before, after client.Object) (ref modulesv1.SourceReference, namespace string, changed bool) {
	was, is := readSource(before), readSource(after)
	present := is
	if present.Object == nil {
		present = was
	}
	if present.Object == nil {
		return ref, "", false
	}
	ref = modulesv1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: present.kind, Name: present.GetName()}
	changed = was.Object == nil || is.Object == nil || was.GetGeneration() != is.GetGeneration() || was.failed != is.failed ||
		!equality.Semantic.DeepEqual(was.artifact, is.artifact) || is.failed && was.ready.Message != is.ready.Message
	return ref, present.GetNamespace(), changed
}

// readSource takes from a source what counts; nothing from none.
func readSource(obj client.Object) sourceObject {
	switch obj := obj.(type) {
	case *sourcev1.OCIRepository:
		if obj != nil {
			return readOCI(obj)
		}
	case *sourcev1.GitRepository:
		if obj != nil {
			return readGit(obj)
		}
	}
	return sourceObject{}
}

func readOCI(obj *sourcev1.OCIRepository) sourceObject {
	read := sourceObject{
		Object: obj, kind: sourcev1.OCIRepositoryKind,
		artifact: obj.Status.Artifact, ready: conditions.Get(obj, meta.ReadyCondition), failed: hasFailed(obj),
	}
	if obj.Spec.Reference != nil {
		read.pin = obj.Spec.Reference.Digest
	}
	layer := obj.Spec.LayerSelector
	if layer != nil {
		read.part = layer.MediaType
	}
	if obj.Spec.Ignore != nil || layer != nil && layer.Operation == sourcev1.OCILayerCopy {
		read.part += "!" + shortHash(obj.Spec.Ignore, layer)
	}
	return read
}

func readGit(obj *sourcev1.GitRepository) sourceObject {
	read := sourceObject{
		Object: obj, kind: sourcev1.GitRepositoryKind,
		artifact: obj.Status.Artifact, ready: conditions.Get(obj, meta.ReadyCondition), failed: hasFailed(obj),
	}
	spec := obj.Spec
	// What is included can move, whatever the repository itself is pinned to.
	if spec.Reference != nil && spec.Reference.Commit != "" && len(spec.Include) == 0 {
		read.pin = commitPin(spec.Reference.Commit)
	}
	if spec.Ignore != nil || spec.RecurseSubmodules || len(spec.SparseCheckout) > 0 {
		read.part = "!" + shortHash(spec.Ignore, spec.RecurseSubmodules, spec.SparseCheckout)
	}
	return read
}

// hasFailed says whether the source has tried what its spec asks for now, in vain.
func hasFailed(obj conditions.Getter) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == obj.GetGeneration()
}
