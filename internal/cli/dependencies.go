package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/view"
)

// dependencies are what an object's spec says has to be ready first: in the same namespace, or of a kind that has none. Which it is, is known of our
// kinds.
func dependencies(obj *unstructured.Unstructured) (all []*view.Node) {
	listed, _, _ := unstructured.NestedSlice(obj.Object, "spec", "dependsOn")
	for _, one := range listed {
		fields, _ := one.(map[string]any)
		text := func(name string) string { found, _ := fields[name].(string); return found }
		of, err := schema.ParseGroupVersion(text("apiVersion"))
		if err != nil || text("kind") == "" || text("name") == "" {
			continue
		}
		made := &view.Node{Group: of.Group, Kind: text("kind"), Name: text("name")}
		if k, ours := kindOf(made.Kind); ours && k.Group == of.Group {
			made.Namespace = obj.GetNamespace()
		}
		all = append(all, made)
	}
	return all
}

// hangDependencies says what the object depends on, and how that is where it is one of ours: one GET for each.
func (s *session) hangDependencies(ctx context.Context, node *view.Node, obj *unstructured.Unstructured) error {
	var lacking []error
	for _, one := range dependencies(obj) {
		if one.Namespace != "" {
			k, _ := kindOf(one.Kind)
			found := &unstructured.Unstructured{}
			found.SetGroupVersionKind(k.GroupVersionKind)
			switch err := s.Get(ctx, client.ObjectKey{Namespace: one.Namespace, Name: one.Name}, found); {
			case apierrors.IsNotFound(err):
				one.Message = "not found"
			case err != nil:
				lacking = append(lacking, explain(fmt.Sprintf("get %s %q in namespace %q", one.Kind, one.Name, one.Namespace), err, "sluice-view"))
			default:
				one = view.NodeOf(found, "").Alone()
			}
		}
		node.DependsOn = append(node.DependsOn, one)
	}
	return errors.Join(lacking...)
}
