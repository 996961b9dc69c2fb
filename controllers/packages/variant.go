package packages

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariants,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariants/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagevariants/finalizers,verbs=update
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions/approval,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=packagevariants.packages.sluice.dev,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;impersonate

// variants makes PackageVariant a kernel.Kind: what the package should be, and what is left to do about it.
type variants struct{ shared Shared }

var (
	_ kernel.Kind[*packagesv1.PackageVariant, *look]       = (*variants)(nil)
	_ kernel.Owner[*packagesv1.PackageVariant, *look]      = (*variants)(nil)
	_ kernel.Dismantler[*packagesv1.PackageVariant, *look] = (*variants)(nil)
	_ kernel.Forgetter                                     = (*variants)(nil)
)

// look is what came of one look at a variant.
type look struct {
	upstream   *packagesv1.UpstreamStatus
	downstream *packagesv1.DownstreamStatus
	// kept is the package of before, as long as the variant has not let go of it.
	kept *packagesv1.DownstreamStatus
	// digest names what the package is to be made of.
	digest   string
	injected []packagesv1.InjectedStatus
	bound    []packagesv1.BindingStatus
	// lacking says which required points of injection have nothing to fill them.
	lacking []string
	// state is what the repository has of the package, and open the variant's own change of it.
	state *pkgrepo.Package
	open  *pkgrepo.Revision
	// last is what became of the order that was carried out last; nil if it is not known any more.
	last *outcome
	// wrote is what became of the order that wrote the open change; nil if that is not known any more.
	wrote *outcome
	// change is how the open change is shown; nil without one.
	change *packagesv1.ChangeStatus
	// adopted is what was taken over as it was; nil for nothing.
	adopted *packagesv1.AdoptedStatus
	// keptDraft is the branch of a draft that the variant left behind, as people have committed to it.
	keptDraft string
	// older says that the upstream content goes back.
	older older
	// review is how the review of the change goes.
	review reviewed
	// pending says why the package is not made anew though it should be, with the reason; empty if it is.
	pending, pendingReason string
	// progress says what is being done; empty when all is done that can be.
	progress string
}

// setupVariant adds the controller of PackageVariant objects to the manager.
func setupVariant(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagevariant").
		For(&packagesv1.PackageVariant{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		WatchesRawSource(ctrlsource.Func(shared.variants.Start)).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(kernel.New(shared.Shell, &variants{shared: shared}, packagesv1.VariantFinalizer, backoff))
}

// New implements kernel.Kind.
func (*variants) New() *packagesv1.PackageVariant { return &packagesv1.PackageVariant{} }

// View implements kernel.Kind.
func (*variants) View(obj *packagesv1.PackageVariant) kernel.View {
	return kernel.View{
		Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus,
		Interval: obj.GetRequeueAfter(), Timeout: obj.Spec.GetTimeout(),
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind.
func (*variants) Table() status.Table {
	return status.Table{
		SuspendedReason: packagesv1.SuspendedReason,
		Facts: []string{
			packagesv1.UpdatePendingCondition, packagesv1.ConflictedCondition, packagesv1.InjectedCondition, packagesv1.RenderedCondition,
			packagesv1.ReviewedCondition, packagesv1.GoesBackCondition,
		},
	}
}

// Forget implements kernel.Forgetter.
func (k *variants) Forget(key client.ObjectKey) {
	k.shared.desk.forget(orderer{ofVariant, key})
	k.shared.reviews.forget(key)
	k.shared.Lookups.Forget(key)
}

// ownerOf is how a package names its variant.
func ownerOf(obj *packagesv1.PackageVariant) string { return obj.Namespace + "/" + obj.Name }

// in names an object of the same namespace.
func in(obj client.Object, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
}

// Work implements kernel.Kind: it finds out what the package should be, and orders what is missing.
func (k *variants) Work(ctx context.Context, obj *packagesv1.PackageVariant, _ kernel.Announce) (*look, error) {
	k.shared.desk.looks(client.ObjectKeyFromObject(obj))
	ctx, cancel := context.WithTimeoutCause(ctx, k.shared.Allowed(obj.Spec.GetTimeout()), fmt.Errorf("spec.timeout is over"))
	defer cancel()
	l := &look{}
	if err := k.move(ctx, obj, l); err != nil || l.progress != "" {
		return l, err
	}
	b, err := k.brief(ctx, obj, l)
	if err != nil {
		return l, err
	}
	return l, k.next(ctx, obj, b, l)
}
