package installation

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/failure"
)

// awaitDependents waits with an uninstall that would take from under others what they depend on. What has begun goes on, what
// is let go of goes on working, and a namespace takes all of them with it.
func (k *installations) awaitDependents(ctx context.Context, obj *modulesv1.ModuleInstallation, record *modulesv1.Inventory) error {
	mode := obj.Spec.GetDeletionMode()
	if recorded := record.Data.Deletion; recorded != nil {
		mode = cmp.Or(mode, recorded.Mode)
	}
	if mode == modulesv1.DeletionOrphan || record.Data.Phase == modulesv1.PhaseDeleting {
		return nil
	}
	var list modulesv1.ModuleInstallationList
	if err := k.options.Client.List(ctx, &list, client.InNamespace(obj.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the installations that depend on this one: %w", err)
	}
	var names []string
	for i := range list.Items {
		if dependsOn(&list.Items[i]).Has(client.ObjectKeyFromObject(obj)) {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := k.options.Client.Get(ctx, client.ObjectKey{Name: obj.Namespace}, namespace); err != nil {
		return fmt.Errorf("find out whether the namespace is going: %w", err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	who := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		who += " and others"
	}
	return failure.Wait(modulesv1.DependentsReason, 0, fmt.Errorf(
		"in dependsOn of %s; delete them first, take it out there, or set deletion.mode to Orphan", who))
}

// dependsOn are the installations of its namespace that one depends on, unless it is going itself: two that depend on each
// other would wait for ever.
func dependsOn(obj *modulesv1.ModuleInstallation) offers.Names {
	if obj == nil || !obj.DeletionTimestamp.IsZero() {
		return nil
	}
	names := offers.Names{}
	for _, d := range obj.Spec.DependsOn {
		if version, err := schema.ParseGroupVersion(d.APIVersion); err == nil &&
			version.Group == modulesv1.GroupVersion.Group && d.Kind == modulesv1.ModuleInstallationKind {
			names.Insert(types.NamespacedName{Namespace: obj.Namespace, Name: d.Name})
		}
	}
	return names
}

// onDependent finds the installations that another one does not depend on any more.
func onDependent(_ context.Context, before, after *modulesv1.ModuleInstallation) offers.Names {
	return dependsOn(before).Difference(dependsOn(after))
}
