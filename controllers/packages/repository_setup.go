package packages

import (
	"context"

	"github.com/fluxcd/pkg/runtime/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
)

// setupRepository adds the controller of Repository objects to the manager.
func setupRepository(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	k := &repositories{shared: shared}
	shared.desk.keptIn = k.keptIn
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagerepository").
		For(&packagesv1.Repository{}, builder.WithPredicates(asked)).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(k.of), builder.WithPredicates(asked)).
		WatchesRawSource(ctrlsource.Func(shared.repositories.Start)).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(kernel.New(shared.Shell, k, packagesv1.RepositoryFinalizer, backoff))
}

// of are the Repositories of a GitRepository.
func (k *repositories) of(ctx context.Context, source client.Object) []reconcile.Request {
	var list packagesv1.RepositoryList
	err := k.shared.Client.List(ctx, &list, client.InNamespace(source.GetNamespace()), client.MatchingFields{sourceIndex: source.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the Repositories of the GitRepository; they follow at their interval")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		k.shared.reviews.look(client.ObjectKeyFromObject(&list.Items[i]), false, true) // A webhook may tell of a request.
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
