package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// known are the templates of the module that are in the namespace.
func (r *releaser) known(ctx context.Context) ([]modulesv1.ModuleTemplate, error) {
	var all modulesv1.ModuleTemplateList
	if err := r.List(ctx, &all, client.InNamespace(r.namespace())); err != nil {
		return nil, explain("list the templates in namespace "+r.namespace(), err, catalogueRole)
	}
	var mine []modulesv1.ModuleTemplate
	for _, one := range all.Items {
		if one.Spec.ModuleName == r.module {
			one.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleTemplateKind))
			mine = append(mine, one)
		}
	}
	return mine, nil
}

// contradicting tells which templates under other names say something else of the version or the channel.
func contradicting(known, templates []modulesv1.ModuleTemplate) (told []string) {
	names := map[string]bool{}
	for _, one := range templates {
		names[one.Name] = true
	}
	last := templates[len(templates)-1].Spec
	for _, other := range known {
		switch {
		case names[other.Name]:
		case other.Spec.Version == last.Version && contentOf(other.Spec) != contentOf(last):
			told = append(told, fmt.Sprintf("ModuleTemplate %s has version %s with other content: raise the version, or delete the template", other.Name, last.Version))
		case last.Channel != "" && other.Spec.Channel == last.Channel:
			told = append(told, fmt.Sprintf("ModuleTemplate %s claims channel %s too: edit that one instead, or delete it", other.Name, last.Channel))
		}
	}
	return told
}

// contentOf is what a template installs, as far as it can be compared here.
func contentOf(spec modulesv1.ModuleTemplateSpec) string {
	if spec.Artifact.OCI == nil {
		return "no registry's"
	}
	return spec.Artifact.OCI.Digest + " " + spec.Artifact.Path
}

// applied applies the objects, the release before the channel that points at it, and then says of others that they are deprecated.
func (r *releaser) applied(ctx context.Context, objects, deprecated []*unstructured.Unstructured) error {
	for _, obj := range objects {
		err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), manager, client.ForceOwnership)
		if err := r.changed(obj, "applied", err); err != nil {
			return err
		}
	}
	for _, obj := range deprecated {
		// All else in it stays whose it is.
		support, _, _ := unstructured.NestedMap(obj.Object, "spec", "support")
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"support": support}})
		if err != nil {
			return fmt.Errorf("encode a patch: %w", err)
		}
		err = r.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), manager)
		if err := r.changed(obj, "deprecated", err); err != nil {
			return err
		}
	}
	return nil
}

// changed tells of the change of a template, or why there is none.
func (r *releaser) changed(obj *unstructured.Unstructured, done string, err error) error {
	namespace, name := obj.GetNamespace(), obj.GetName()
	if err != nil {
		return explain(fmt.Sprintf("apply ModuleTemplate %s/%s", namespace, name), err, "sluice-edit in namespace "+namespace)
	}
	fmt.Fprintf(r.Out, "moduletemplate.modules.sluice.dev/%s %s\n", name, done)
	return nil
}
