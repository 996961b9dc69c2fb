package offers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

const (
	// keysIndex finds installations by what they listen to in a catalogue, as package catalog spells it.
	keysIndex = "spec.module.keys"
	// homeIndex finds them by their namespace. The cache refuses a namespace that it does not hold, and finds nothing for
	// it in an index.
	homeIndex = "metadata.namespace"
)

func indexHome(obj client.Object) []string { return []string{obj.GetNamespace()} }

// indexKeys is what an installation listens to: what it asks for, and what is said of the release that it runs.
func indexKeys(obj client.Object) []string {
	installation, ok := obj.(*modulesv1.ModuleInstallation)
	if !ok {
		return nil
	}
	keys := objects.RequestOf(installation).Keys()
	if resolution := installation.Status.Resolution; resolution != nil && resolution.Module != "" {
		keys = append(keys, catalog.ModuleKey(resolution.Module))
	}
	for _, release := range objects.ReleasesOf(installation) {
		keys = append(keys, catalog.TemplateKey(release.Template))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Installations are those that listen to one of the keys, and that choose from the namespace's catalogue. All that are
// returned twice would be looked at once.
func (o *Offers) Installations(ctx context.Context, namespace string, keys []string) ([]reconcile.Request, error) {
	found := map[types.NamespacedName]struct{}{}
	for _, key := range keys {
		options := []client.ListOption{client.MatchingFields{keysIndex: key}, client.UnsafeDisableDeepCopy}
		if namespace != o.system {
			options = append(options, client.InNamespace(namespace))
		}
		var list modulesv1.ModuleInstallationList
		if err := o.reader.List(ctx, &list, options...); err != nil {
			return nil, fmt.Errorf("list the installations that follow %q: %w", key, err)
		}
		for i := range list.Items {
			if o.choosesFrom(&list.Items[i], namespace) {
				found[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
			}
		}
	}
	return Requests(found), nil
}

// choosesFrom says whether the catalogue may have a say for the installation. A release that it runs may be recorded
// from either.
func (o *Offers) choosesFrom(obj *modulesv1.ModuleInstallation, namespace string) bool {
	switch obj.Spec.Module.GetCatalog() {
	case modulesv1.CatalogLocal:
		return obj.Namespace == namespace || runsFrom(obj, namespace)
	case modulesv1.CatalogSystem:
		return namespace == o.system || runsFrom(obj, namespace)
	default:
		return obj.Namespace == namespace || namespace == o.system
	}
}

func runsFrom(obj *modulesv1.ModuleInstallation, namespace string) bool {
	return slices.ContainsFunc(objects.ReleasesOf(obj), func(r *modulesv1.Release) bool { return r.Namespace == namespace })
}

// OnTemplate wakes the installations that a change of a ModuleTemplate may matter to.
func (o *Offers) OnTemplate() handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after *modulesv1.ModuleTemplate) []reconcile.Request {
		namespace, keys := o.templateKeys(ctx, before, after)
		return o.wake(ctx, namespace, keys)
	})
}

// templateKeys are the keys of those that a change of a template may matter to.
func (o *Offers) templateKeys(ctx context.Context, before, after *modulesv1.ModuleTemplate) (namespace string, keys []string) {
	present := after
	if present == nil {
		present = before
	}
	was, is := before != nil, after != nil
	if was && is && objects.ReleaseOf(before) == objects.ReleaseOf(after) {
		if before.Generation == after.Generation && equality.Semantic.DeepEqual(fetched(before), fetched(after)) {
			return present.Namespace, nil
		}
		// It is the same release, and something beside it has changed: say, how its health is told.
		return present.Namespace, []string{catalog.TemplateKey(present.Name)}
	}
	now, err := o.Namespace(ctx, present.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot read the catalogue; installations follow at their interval", "template", present.Name)
		return present.Namespace, nil
	}
	if was {
		keys = append(keys, now.Wakes(objects.ReleaseOf(before))...)
	}
	if is {
		keys = append(keys, now.Wakes(objects.ReleaseOf(after))...)
	}
	slices.Sort(keys)
	return present.Namespace, slices.Compact(keys)
}

// fetched is what the status says of the artifact.
func fetched(t *modulesv1.ModuleTemplate) []string {
	source := ""
	if t.Status.SourceRef != nil {
		source = t.Status.SourceRef.Kind + "/" + t.Status.SourceRef.Name
	}
	return []string{source, t.Status.Digest, t.Status.Revision}
}

// OnModule wakes the installations that a change of a Module may matter to.
func (o *Offers) OnModule() handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after *modulesv1.Module) []reconcile.Request {
		namespace, keys := moduleKeys(before, after)
		return o.wake(ctx, namespace, keys)
	})
}

// moduleKeys are the keys of those that a change of a module may matter to.
func moduleKeys(before, after *modulesv1.Module) (namespace string, keys []string) {
	switch {
	case before == nil && after == nil:
		return "", nil
	case before == nil:
		return after.Namespace, []string{catalog.ModuleKey(after.Name)}
	case after == nil:
		return before.Namespace, []string{catalog.ModuleKey(before.Name)}
	case before.Undecodable != after.Undecodable, !equality.Semantic.DeepEqual(before.Spec.Consumers, after.Spec.Consumers):
		return after.Namespace, []string{catalog.ModuleKey(after.Name)}
	default:
		was, is := objects.ModuleOf(before), objects.ModuleOf(after)
		return after.Namespace, catalog.WakesOf(&was, &is)
	}
}

// OnNamespace wakes the installations of a namespace whose labels have changed: modules select by these. The objects are
// metadata, of every namespace there is: also of those whose installations are not watched.
func (o *Offers) OnNamespace() handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after *metav1.PartialObjectMetadata) []reconcile.Request {
		if before == nil || after == nil || maps.Equal(before.Labels, after.Labels) {
			return nil
		}
		var list modulesv1.ModuleInstallationList
		if err := o.reader.List(ctx, &list, client.MatchingFields{homeIndex: after.Name}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list installations; they follow at their interval", "consumer", after.Name)
			return nil
		}
		return requestsFor(list.Items)
	})
}

// OnSource wakes the installations whose release comes from a source that has changed. O is the source's kind.
func OnSource[O client.Object](o *Offers) handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after O) []reconcile.Request {
		ref, namespace, changed := objects.SourceChange(before, after)
		if !changed {
			return nil
		}
		var list modulesv1.ModuleInstallationList
		err := o.reader.List(ctx, &list, client.MatchingFields{sourceIndex: sourceKey(namespace, ref)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list installations; they follow at their interval", "source", ref.Name)
			return nil
		}
		return requestsFor(list.Items)
	})
}

func (o *Offers) wake(ctx context.Context, namespace string, keys []string) []reconcile.Request {
	found, err := o.Installations(ctx, namespace, keys)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the installations that a change concerns; they follow at their interval")
	}
	return found
}

func requestsFor(installations []modulesv1.ModuleInstallation) []reconcile.Request {
	names := make(map[types.NamespacedName]struct{}, len(installations))
	for i := range installations {
		names[client.ObjectKeyFromObject(&installations[i])] = struct{}{}
	}
	return Requests(names)
}
