package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

func exportCommand(b *base) *cobra.Command {
	g := &getter{base: b, selector: labels.Everything()}
	command := &cobra.Command{
		Use:   "export [KIND|all|sources] [NAME...] | KIND/NAME...",
		Short: "Write objects as manifests that can be applied elsewhere",
		Example: `  sluice export all > team-a.yaml
  sluice export gitrepository/app`,
		ValidArgsFunction: b.complete(kindNames("all", "sources")),
	}
	command.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "Write the objects of all namespaces.")
	return b.on(command, func(ctx context.Context, args []string) error {
		asked, err := parse(args)
		if err != nil {
			return err
		}
		written, err := g.export(ctx, asked)
		if err == nil && written == 0 && !g.all {
			err = b.unfounded(ctx)
		}
		if err == nil && written == 0 {
			fmt.Fprintf(b.ErrOut, "There are none%s.\n", g.where())
		}
		return err
	})
}

// export writes what is asked for, and gives how many objects that are. What was found is written beside an error too.
func (g *getter) export(ctx context.Context, asked []wanted) (written int, err error) {
	var problems []error
	printer := manifestPrinter()
	for _, one := range asked {
		found, err := g.find(ctx, one)
		problems = append(problems, err)
		for i := range found {
			if isMade(&found[i]) && len(one.names) == 0 {
				continue
			}
			if err := printer.PrintObj(manifest(&found[i]), g.Out); err != nil {
				return written, unprinted(err)
			}
			written++
		}
	}
	return written, errors.Join(problems...)
}

// isMade says that a controller makes the object, and would make it again: for its owner, for a template, or from what is in Git.
func isMade(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == packagesv1.PackageRevisionKind || obj.GetKind() == sourcev1.ExternalArtifactKind ||
		obj.GetAnnotations()[modulesv1.TemplateAnnotation] != "" || metav1.GetControllerOf(obj) != nil
}

// manifest is what was asked for of an object: without its status, and without what an API server puts in.
func manifest(obj *unstructured.Unstructured) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(obj.GroupVersionKind())
	made.SetNamespace(obj.GetNamespace())
	made.SetName(obj.GetName())
	made.SetLabels(obj.GetLabels())
	annotations := obj.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	made.SetAnnotations(annotations)
	for field, value := range obj.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			made.Object[field] = value
		}
	}
	return made
}
