package modules

import (
	"context"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/kernel"
)

// SetupModuleTemplate adds the controller of ModuleTemplate objects to the manager. The catalogue's fields are indexed
// by then.
func SetupModuleTemplate(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	w := templateWakes{shared.Catalogue}
	return ctrl.NewControllerManagedBy(mgr).
		Named("moduletemplate").
		For(&modulesv1.ModuleTemplate{}, builder.WithPredicates(predicate.Or(
			// Old templates have their module and version in labels and annotations.
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
			predicates.ReconcileRequestedPredicate{}))).
		Watches(&modulesv1.ModuleTemplate{}, changes(0, w.ofTemplate)).
		Watches(&modulesv1.Module{}, changes(0, w.ofModule)).
		Watches(&modulesv1.ModuleInstallation{}, changes(0, w.ofInstallation)).
		Watches(&sourcev1.OCIRepository{}, changes(0, sourced[*sourcev1.OCIRepository](w))).
		Watches(&sourcev1.GitRepository{}, changes(0, sourced[*sourcev1.GitRepository](w))).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(NewModuleTemplateReconciler(shared, backoff))
}

// templateWakes finds the templates that changes of other objects concern.
type templateWakes struct{ catalogue *Catalogue }

// ofTemplate: another template may state the same version or channel, and its own status may say more about it by now.
func (w templateWakes) ofTemplate(ctx context.Context, before, after *modulesv1.ModuleTemplate) []reconcile.Request {
	if before != nil && after != nil && releaseOf(before) == releaseOf(after) {
		return nil
	}
	names := map[types.NamespacedName]struct{}{}
	for _, template := range []*modulesv1.ModuleTemplate{before, after} {
		if template == nil {
			continue
		}
		release := releaseOf(template)
		names[client.ObjectKeyFromObject(template)] = struct{}{}
		for _, other := range w.releases(ctx, template.Namespace, release.Module) {
			if sameVersion(other, release) || other.Claims() && other.Channel == release.Channel {
				names[types.NamespacedName{Namespace: template.Namespace, Name: other.Template}] = struct{}{}
			}
		}
	}
	return requests(names)
}

// ofModule: its channels point elsewhere.
func (w templateWakes) ofModule(ctx context.Context, before, after *modulesv1.Module) []reconcile.Request {
	present := after
	if present == nil {
		present = before
	}
	if before != nil && after != nil && before.Generation == after.Generation {
		return nil
	}
	names := map[types.NamespacedName]struct{}{}
	for _, release := range w.releases(ctx, present.Namespace, present.Name) {
		names[types.NamespacedName{Namespace: present.Namespace, Name: release.Template}] = struct{}{}
	}
	return requests(names)
}

// ofInstallation: it needs other releases than before.
func (w templateWakes) ofInstallation(_ context.Context, before, after *modulesv1.ModuleInstallation) []reconcile.Request {
	needed := func(obj *modulesv1.ModuleInstallation) []*modulesv1.Release {
		if obj == nil {
			return nil
		}
		return releasesOf(obj)
	}
	was, is := needed(before), needed(after)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	names := map[types.NamespacedName]struct{}{}
	for _, release := range slices.Concat(was, is) {
		names[types.NamespacedName{Namespace: release.Namespace, Name: release.Template}] = struct{}{}
	}
	return requests(names)
}

// sourced: the source has something else, or fails.
func sourced[O client.Object](w templateWakes) func(context.Context, O, O) []reconcile.Request {
	return func(ctx context.Context, before, after O) []reconcile.Request {
		ref, namespace, changed := sourceChange(before, after)
		if !changed {
			return nil
		}
		names := map[types.NamespacedName]struct{}{}
		for _, source := range []sourceObject{readSource(before), readSource(after)} {
			if source.Object == nil {
				continue
			}
			if owner := metav1.GetControllerOfNoCopy(source); owner != nil && owner.Kind == modulesv1.ModuleTemplateKind {
				names[types.NamespacedName{Namespace: namespace, Name: owner.Name}] = struct{}{}
			}
		}
		var list modulesv1.ModuleTemplateList
		err := w.catalogue.reader.List(ctx, &list, client.MatchingFields{sourceIndex: sourceKey(namespace, ref)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list templates; they follow at their interval", "source", ref.Name)
		}
		for i := range list.Items {
			names[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
		}
		return requests(names)
	}
}

func (w templateWakes) releases(ctx context.Context, namespace, module string) []catalog.Release {
	catalogue, err := w.catalogue.Namespace(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot read the catalogue; templates follow at their interval", "module", module)
		return nil
	}
	return catalogue.Releases(module)
}

// requests are for the names, in their order.
func requests(names map[types.NamespacedName]struct{}) []reconcile.Request {
	found := make([]reconcile.Request, 0, len(names))
	for _, name := range slices.SortedFunc(maps.Keys(names), compareNames) {
		found = append(found, reconcile.Request{NamespacedName: name})
	}
	return found
}
