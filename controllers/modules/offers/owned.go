package offers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog/objects"
)

// MadeSources are the sources that were made for templates.
func (o *Offers) MadeSources(ctx context.Context) ([]client.Object, error) {
	var ocis sourcev1.OCIRepositoryList
	var gits sourcev1.GitRepositoryList
	for _, list := range []client.ObjectList{&ocis, &gits} {
		if err := o.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list sources: %w", err)
		}
	}
	var made []client.Object
	for i := range ocis.Items {
		made = append(made, &ocis.Items[i])
	}
	for i := range gits.Items {
		made = append(made, &gits.Items[i])
	}
	return slices.DeleteFunc(made, func(source client.Object) bool { return objects.ReadSource(source).MadeFor() == "" }), nil
}

// IsNeeded says whether the template that the source was made for has a use for it now, or an installation runs what is in
// it or may go back to that. The template may be gone.
func (o *Offers) IsNeeded(ctx context.Context, source client.Object) (bool, error) {
	key := types.NamespacedName{Namespace: source.GetNamespace(), Name: objects.ReadSource(source).MadeFor()}
	template := &modulesv1.ModuleTemplate{}
	if err := o.reader.Get(ctx, key, template); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read template %q: %w", key.Name, err)
	}
	if ref := template.Status.SourceRef; ref != nil && ref.Name == source.GetName() {
		return true, nil
	}
	template.Namespace, template.Name = key.Namespace, key.Name
	uses, err := o.UsesOf(ctx, template)
	return uses.Sources[source.GetName()], err
}

// TemplatesFrom adds the templates that refer to the source.
func (o *Offers) TemplatesFrom(ctx context.Context, namespace string, source modulesv1.SourceReference, names Names) error {
	var list modulesv1.ModuleTemplateList
	err := o.reader.List(ctx, &list, client.MatchingFields{sourceIndex: sourceKey(namespace, source)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the templates with source %q: %w", source.Name, err)
	}
	for i := range list.Items {
		names.Insert(client.ObjectKeyFromObject(&list.Items[i]))
	}
	return nil
}
