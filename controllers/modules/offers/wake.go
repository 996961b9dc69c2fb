package offers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

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

func indexHome(installation *modulesv1.ModuleInstallation) []string {
	return []string{installation.Namespace}
}

// indexKeys is what an installation listens to: what it asks for, and what is said of the release that it runs.
func indexKeys(installation *modulesv1.ModuleInstallation) []string {
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

// Installations are those that listen to one of the keys, and that choose from the namespace's catalogue.
func (o *Offers) Installations(ctx context.Context, namespace string, keys []string) Names {
	within := client.InNamespace(namespace)
	if namespace == o.system {
		within = ""
	}
	found := Names{}
	for _, key := range keys {
		chooses := func(obj *modulesv1.ModuleInstallation) bool { return o.choosesFrom(obj, namespace) }
		found = found.Union(o.Names(ctx, chooses, client.MatchingFields{keysIndex: key}, within))
	}
	return found
}

// Names are those of the listed installations that are meant. Without an answer nobody is: they follow at their interval.
func (o *Offers) Names(ctx context.Context, meant func(*modulesv1.ModuleInstallation) bool, options ...client.ListOption) Names {
	installations, err := o.installations(ctx, options...)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list installations that a change concerns; they follow at their interval")
	}
	names := Names{}
	for i := range installations {
		if meant(&installations[i]) {
			names.Insert(client.ObjectKeyFromObject(&installations[i]))
		}
	}
	return names
}

func anyone(*modulesv1.ModuleInstallation) bool { return true }

func (o *Offers) installations(ctx context.Context, options ...client.ListOption) ([]modulesv1.ModuleInstallation, error) {
	var list modulesv1.ModuleInstallationList
	err := o.reader.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...)
	return list.Items, err
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
	return Changes(0, func(ctx context.Context, before, after *modulesv1.ModuleTemplate) Names {
		return o.Installations(ctx, cmp.Or(after, before).Namespace, o.templateKeys(ctx, before, after))
	})
}

// templateKeys are the keys of those that a change of a template may matter to.
func (o *Offers) templateKeys(ctx context.Context, before, after *modulesv1.ModuleTemplate) []string {
	present := cmp.Or(after, before)
	if before != nil && after != nil && objects.ReleaseOf(before) == objects.ReleaseOf(after) {
		if before.Generation == after.Generation && equality.Semantic.DeepEqual(fetched(before), fetched(after)) {
			return nil
		}
		// It is the same release, and something beside it has changed: say, how its health is told.
		return []string{catalog.TemplateKey(present.Name)}
	}
	now, err := o.Namespace(ctx, present.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot read the catalogue; installations follow at their interval", "template", present.Name)
		return nil
	}
	keys := sets.Set[string]{}
	for _, template := range []*modulesv1.ModuleTemplate{before, after} {
		if template != nil {
			keys.Insert(now.Wakes(objects.ReleaseOf(template))...)
		}
	}
	return keys.UnsortedList()
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
	return Changes(0, func(ctx context.Context, before, after *modulesv1.Module) Names {
		return o.Installations(ctx, cmp.Or(after, before).Namespace, moduleKeys(before, after))
	})
}

// moduleKeys are the keys of those that a change of a module may matter to.
func moduleKeys(before, after *modulesv1.Module) []string {
	if before == nil || after == nil ||
		before.Undecodable != after.Undecodable || !equality.Semantic.DeepEqual(before.Spec.Consumers, after.Spec.Consumers) {
		return []string{catalog.ModuleKey(cmp.Or(after, before).Name)}
	}
	was, is := objects.ModuleOf(before, nil), objects.ModuleOf(after, nil)
	return catalog.WakesOf(&was, &is)
}

// OnNamespace wakes the installations of a namespace whose labels have changed: modules select by these. The objects are
// metadata, of every namespace there is: also of those whose installations are not watched.
func (o *Offers) OnNamespace() handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after *metav1.PartialObjectMetadata) Names {
		if before == nil || after == nil || maps.Equal(before.Labels, after.Labels) {
			return nil
		}
		return o.Names(ctx, anyone, client.MatchingFields{homeIndex: after.Name})
	})
}

// OnSource wakes the installations whose release comes from a source that has changed. O is the source's kind.
func OnSource[O client.Object](o *Offers) handler.EventHandler {
	return Changes(0, func(ctx context.Context, before, after O) Names {
		ref, namespace, changed := objects.SourceChange(before, after)
		if !changed {
			return nil
		}
		return o.Names(ctx, anyone, client.MatchingFields{sourceIndex: sourceKey(namespace, ref)})
	})
}
