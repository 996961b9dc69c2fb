package offers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// ownerIndex finds the sources that were made for a template, by its UID.
const ownerIndex = "metadata.ownerReferences.moduleTemplate"

func indexOwner(obj client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != modulesv1.ModuleTemplateKind || owner.APIVersion != modulesv1.GroupVersion.String() {
		return nil
	}
	return []string{string(owner.UID)}
}

// SourcesOf are the sources that were made for the template.
func (o *Offers) SourcesOf(ctx context.Context, t *modulesv1.ModuleTemplate) ([]client.Object, error) {
	var ocis sourcev1.OCIRepositoryList
	var gits sourcev1.GitRepositoryList
	for _, list := range []client.ObjectList{&ocis, &gits} {
		if err := o.reader.List(ctx, list, client.InNamespace(t.Namespace), client.MatchingFields{ownerIndex: string(t.UID)}); err != nil {
			return nil, fmt.Errorf("list the sources of template %q: %w", t.Name, err)
		}
	}
	sources := make([]client.Object, 0, len(ocis.Items)+len(gits.Items))
	for i := range ocis.Items {
		sources = append(sources, &ocis.Items[i])
	}
	for i := range gits.Items {
		sources = append(sources, &gits.Items[i])
	}
	return sources, nil
}

// TemplatesFrom adds the templates that refer to the source.
func (o *Offers) TemplatesFrom(
	ctx context.Context, namespace string, source modulesv1.SourceReference, names map[types.NamespacedName]struct{},
) error {
	var list modulesv1.ModuleTemplateList
	err := o.reader.List(ctx, &list, client.MatchingFields{sourceIndex: sourceKey(namespace, source)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the templates with source %q: %w", source.Name, err)
	}
	for i := range list.Items {
		names[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
	}
	return nil
}
