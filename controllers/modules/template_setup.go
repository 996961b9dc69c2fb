package modules

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/kernel"
)

// SetupTemplate adds the controller of ModuleTemplate objects to the manager, and the sweeper of their sources. The catalogue's fields are indexed
// by then.
func SetupTemplate(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	w := templateWakes{shared.Offers}
	if err := mgr.Add(NewSweeper(shared)); err != nil {
		return fmt.Errorf("add the sweeper of sources: %w", err)
	}
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("moduletemplate").
		For(&modulesv1.ModuleTemplate{}, builder.WithPredicates(predicate.Or(
			// Old templates have their module and version in labels and annotations.
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
			predicates.ReconcileRequestedPredicate{}))).
		Watches(&modulesv1.ModuleTemplate{}, offers.Changes(0, w.ofTemplate)).
		Watches(&modulesv1.Module{}, offers.Changes(0, w.ofModule)).
		Watches(&modulesv1.ModuleInstallation{}, offers.Changes(0, w.ofInstallation)).
		Watches(&sourcev1.OCIRepository{}, offers.Changes(0, sourced[*sourcev1.OCIRepository](w))).
		Watches(&sourcev1.GitRepository{}, offers.Changes(0, sourced[*sourcev1.GitRepository](w))).
		WithOptions(shared.ControllerOptions(backoff))
	if offers.HasExternalArtifacts(mgr.GetRESTMapper()) {
		controller.Watches(&sourcev1.ExternalArtifact{}, offers.Changes(0, sourced[*sourcev1.ExternalArtifact](w)))
	}
	return controller.Complete(NewTemplateReconciler(shared, backoff))
}

// templateWakes finds the templates that changes of other objects concern.
type templateWakes struct{ offers *offers.Offers }

// ofTemplate: another template may state the same version or channel, and its own status may say more about it by now.
func (w templateWakes) ofTemplate(ctx context.Context, before, after *modulesv1.ModuleTemplate) offers.Names {
	if before != nil && after != nil && objects.ReleaseOf(before) == objects.ReleaseOf(after) {
		return nil
	}
	names := offers.Names{}
	for _, template := range []*modulesv1.ModuleTemplate{before, after} {
		if template == nil {
			continue
		}
		release := objects.ReleaseOf(template)
		names.Insert(client.ObjectKeyFromObject(template))
		for _, other := range w.releases(ctx, template.Namespace, release.Module) {
			if objects.SameVersion(other, release) || other.Claims() && other.Channel == release.Channel {
				names.Insert(types.NamespacedName{Namespace: template.Namespace, Name: other.Template})
			}
		}
	}
	return names
}

// ofModule: its channels point elsewhere.
func (w templateWakes) ofModule(ctx context.Context, before, after *modulesv1.Module) offers.Names {
	present := cmp.Or(after, before)
	if before != nil && after != nil && before.Generation == after.Generation {
		return nil
	}
	names := offers.Names{}
	for _, release := range w.releases(ctx, present.Namespace, present.Name) {
		names.Insert(types.NamespacedName{Namespace: present.Namespace, Name: release.Template})
	}
	return names
}

// ofInstallation: it needs other releases than before.
func (w templateWakes) ofInstallation(_ context.Context, before, after *modulesv1.ModuleInstallation) offers.Names {
	needed := func(obj *modulesv1.ModuleInstallation) []*modulesv1.Release {
		if obj == nil {
			return nil
		}
		return objects.ReleasesOf(obj)
	}
	was, is := needed(before), needed(after)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	names := offers.Names{}
	for _, release := range slices.Concat(was, is) {
		names.Insert(types.NamespacedName{Namespace: release.Namespace, Name: release.Template})
	}
	return names
}

// sourced: the source has something else, or fails.
func sourced[O client.Object](w templateWakes) func(context.Context, O, O) offers.Names {
	return func(ctx context.Context, before, after O) offers.Names {
		ref, namespace, changed := objects.SourceChange(before, after)
		if !changed {
			return nil
		}
		names := offers.Names{}
		for _, source := range []objects.Source{objects.ReadSource(before), objects.ReadSource(after)} {
			if source.Object == nil {
				continue
			}
			if template := source.MadeFor(); template != "" {
				names.Insert(types.NamespacedName{Namespace: namespace, Name: template})
			}
		}
		if err := w.offers.TemplatesFrom(ctx, namespace, ref, names); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list templates; they follow at their interval", "source", ref.Name)
		}
		return names
	}
}

func (w templateWakes) releases(ctx context.Context, namespace, module string) []catalog.Release {
	catalogue, err := w.offers.Namespace(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot read the catalogue; templates follow at their interval", "module", module)
		return nil
	}
	return catalogue.Releases(module)
}
