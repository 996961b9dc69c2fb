package build

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// selector is the target as kustomize has it.
func selector(t modulesv1.PatchTarget) *types.Selector {
	return &types.Selector{
		ResId: resid.ResId{
			Gvk: resid.Gvk{Group: t.Group, Version: t.Version, Kind: t.Kind}, Name: t.Name, Namespace: t.Namespace,
		},
		LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector,
	}
}

// Selects says which objects a target means: those to which a patch with that target would be applied.
func Selects(t modulesv1.PatchTarget) (func(*unstructured.Unstructured) bool, error) {
	names, err := types.NewSelectorRegex(selector(t))
	if err != nil {
		return nil, err
	}
	labelled, err := labels.Parse(t.LabelSelector)
	if err != nil {
		return nil, err
	}
	annotated, err := labels.Parse(t.AnnotationSelector)
	return func(o *unstructured.Unstructured) bool {
		gvk := o.GroupVersionKind()
		return names.MatchGvk(resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind)) && names.MatchName(o.GetName()) && names.MatchNamespace(o.GetNamespace()) &&
			labelled.Matches(labels.Set(o.GetLabels())) && annotated.Matches(labels.Set(o.GetAnnotations()))
	}, err
}
