package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source/generator"
)

// inputIndex finds the generators of a source, by its kind, namespace and name.
const inputIndex = "spec.sources"

// SetupArtifactGenerator adds the controller of ArtifactGenerator objects to the manager. The makers of ExternalArtifacts named on
// rebuild are reconciled at once.
func SetupArtifactGenerator(ctx context.Context, mgr ctrl.Manager, shared Shared, maker *generator.Maker, rebuild <-chan event.GenericEvent) error {
	k := &generators{shared: shared, maker: maker}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &extensionsv1.ArtifactGenerator{}, inputIndex, indexInputs); err != nil {
		return fmt.Errorf("index sources of generators: %w", err)
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, predicate.Funcs{UpdateFunc: enabled})
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("artifactgenerator").
		For(&extensionsv1.ArtifactGenerator{}, builder.WithPredicates(asked)).
		Watches(&sourcev1.ExternalArtifact{}, handler.Funcs{UpdateFunc: k.mend, DeleteFunc: k.restore}).
		WatchesRawSource(ctrlsource.Channel(rebuild, handler.EnqueueRequestsFromMapFunc(k.makerOf))).
		WithOptions(shared.ControllerOptions(shared.Backoff))
	for _, kind := range append(Kinds(), Generated()) {
		if kind.Name == sourcev1.HelmRepositoryKind {
			continue
		}
		controller.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(k.usersOf(kind.Name)), builder.WithPredicates(predicate.Or(sourceChanged(), saysOtherwise())))
	}
	return controller.Complete(newGeneratorKernel(k))
}

func newGeneratorKernel(k *generators) *kernel.Kernel[*extensionsv1.ArtifactGenerator, generator.Result] {
	return kernel.New(k.shared.Shell, k, extensionsv1.Finalizer, k.shared.Backoff)
}

// saysOtherwise lets pass that an artifact has other metadata than before.
func saysOtherwise() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(Object)
		after, is := e.ObjectNew.(Object)
		if !was || !is || before.GetArtifact() == nil || after.GetArtifact() == nil {
			return false
		}
		return !equality.Semantic.DeepEqual(before.GetArtifact().Metadata, after.GetArtifact().Metadata)
	}}
}

// enabled lets pass that a generator was turned off, or on again.
func enabled(e event.UpdateEvent) bool {
	key := extensionsv1.ReconcileAnnotation
	return e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key]
}

func indexInputs(obj client.Object) []string {
	made, ok := obj.(*extensionsv1.ArtifactGenerator)
	if !ok {
		return nil
	}
	keys := make([]string, 0, len(made.Spec.Sources))
	for _, ref := range made.Spec.Sources {
		keys = append(keys, inputKey(ref.Kind, ref.GetNamespace(made.Namespace), ref.Name))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func inputKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// usersOf maps a source of the kind to the generators that copy from it.
func (k *generators) usersOf(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list extensionsv1.ArtifactGeneratorList
		err := k.shared.Client.List(ctx, &list, client.MatchingFields{inputIndex: inputKey(kind, obj.GetNamespace(), obj.GetName())}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot find the generators of this source; they follow at their interval", "source", obj.GetName())
			return nil
		}
		return requestsFor(list.Items, func(*extensionsv1.ArtifactGenerator) bool { return true })
	}
}

func requestsFor(list []extensionsv1.ArtifactGenerator, wakes func(*extensionsv1.ArtifactGenerator) bool) []reconcile.Request {
	var requests []reconcile.Request
	for i := range list {
		if wakes(&list[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
		}
	}
	return requests
}

// makerOf maps an ExternalArtifact, of which no more than its name may be known, to the generator that has made it.
func (k *generators) makerOf(ctx context.Context, obj client.Object) []reconcile.Request {
	var there sourcev1.ExternalArtifact
	if err := k.shared.Client.Get(ctx, client.ObjectKeyFromObject(obj), &there); err != nil || makerOf(&there).Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: makerOf(&there)}}
}

// mend has a generator looked at again when somebody else has written to what it has made.
func (k *generators) mend(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	before, ok := e.ObjectOld.(*sourcev1.ExternalArtifact)
	after, both := e.ObjectNew.(*sourcev1.ExternalArtifact)
	if !ok || !both || makerOf(before).Name == "" && makerOf(after).Name == "" || k.isAsMade(ctx, before, after) {
		return
	}
	for _, of := range []*sourcev1.ExternalArtifact{before, after} {
		if maker := makerOf(of); maker.Name != "" {
			queue.AddAfter(reconcile.Request{NamespacedName: maker}, repairDelay)
		}
	}
}

// isAsMade tells whether an object says of itself what it said before, and of its artifact what is stored.
func (k *generators) isAsMade(ctx context.Context, before, after *sourcev1.ExternalArtifact) bool {
	if !equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) || !conditions.IsTrue(after, meta.ReadyCondition) {
		return false
	}
	record, err := k.shared.Pipeline.Store.Record(ctx, outputObject(after.Namespace, after.Name))
	return err == nil && record.UID == string(after.UID) && equality.Semantic.DeepEqual(after.Status.Artifact, k.shared.published(record.Current))
}

// restore has a generator looked at again when something is gone that it has made, or that was in its way.
func (k *generators) restore(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	gone, ok := e.Object.(*sourcev1.ExternalArtifact)
	if !ok {
		return
	}
	var list extensionsv1.ArtifactGeneratorList
	if err := k.shared.Client.List(ctx, &list, client.InNamespace(gone.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the generator of this ExternalArtifact; it follows at its interval", "name", gone.Name)
		return
	}
	for _, request := range requestsFor(list.Items, func(by *extensionsv1.ArtifactGenerator) bool {
		return gone.Labels[extensionsv1.GeneratorLabel] == string(by.UID) || makerOf(gone) == client.ObjectKeyFromObject(by) || !conditions.IsReady(by)
	}) {
		queue.Add(request)
	}
}
