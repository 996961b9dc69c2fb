// Package installation holds the controller of installations: it has a release chosen, brings the cluster there, and reports
// what came of it.
// It does not know how a release is chosen, nor how one is put into the cluster.
package installation

import (
	"context"
	"fmt"
	"sync"

	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/controllers/modules/records"
	"sluice.dev/sluice/controllers/modules/wakes"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations/finalizers,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Rounds is what does the work in the cluster; engine.Engine is it.
type Rounds interface {
	Reconcile(ctx context.Context, in engine.Installation) (engine.Outcome, error)
	Plan(ctx context.Context, in engine.Installation) (modulesv1.Plan, error)
	Begun(ctx context.Context, in engine.Installation) (bool, error)
	Forget(key string)
}

// Options say what the controller of installations works with, and as whom. All are required but the
// last two.
type Options struct {
	kernel.Shell

	// Offers are what releases are chosen from; their fields are indexed already.
	Offers  *offers.Offers
	Engine  Rounds
	Records *records.Inventories
	// Connector gives the clients of the identities that installations work as.
	Connector *cluster.Connector
	// Cache reads from the cache, whatever Client reads past it.
	Cache client.Reader
	// Wakes is what the engine's watcher tells of changes.
	Wakes *wakes.Wakes
	// DefaultServiceAccount is the account, in an installation's own namespace, of those that name none.
	DefaultServiceAccount string
	// AllowOwnIdentity lets installations without an account work as the controller.
	AllowOwnIdentity bool
}

// installations makes ModuleInstallation a kernel.Kind.
type installations struct {
	options  Options
	lookouts *wakes.Lookouts

	mu       sync.Mutex
	memories map[types.NamespacedName]*memory
}

// memory is what is remembered of one installation between rounds, to save requests. All of it can be lost. Only the
// round of the installation touches it.
type memory struct {
	uid       types.UID
	variables *variables
	planned   *planned
	made      *made
}

// made is what an installation was made with that its Inventory does not say.
type made struct {
	config    *modulesv1.InstallationConfig
	prune     *modulesv1.PrunePolicy
	variables map[string]string
}

// asMade is the installation as it was before an edit. Where nobody knows that any more, or an attempt has begun since,
// nothing says what to keep.
func (m *memory) asMade(in engine.Installation, inventory *modulesv1.Inventory) engine.Installation {
	if m.made == nil || inventory.Data.Attempt != nil {
		in.Current = nil
		return in
	}
	in.Spec.Config, in.Spec.Prune, in.Variables = m.made.config, m.made.prune, m.made.variables
	return in
}

var (
	_ kernel.Kind[*modulesv1.ModuleInstallation, round]       = (*installations)(nil)
	_ kernel.Owner[*modulesv1.ModuleInstallation, round]      = (*installations)(nil)
	_ kernel.Dismantler[*modulesv1.ModuleInstallation, round] = (*installations)(nil)
	_ kernel.Doer[*modulesv1.ModuleInstallation, round]       = (*installations)(nil)
	_ kernel.Forgetter                                        = (*installations)(nil)
	_ Rounds                                                  = (*engine.Engine)(nil)
)

// newInstallations returns the kind.
func newInstallations(options Options) *installations {
	return &installations{
		options:  options,
		lookouts: wakes.NewLookouts(options.Connector.Connect, options.Wakes.Wake),
		memories: map[types.NamespacedName]*memory{},
	}
}

// Setup adds the controller of ModuleInstallation objects to the manager.
func Setup(mgr ctrl.Manager, options Options, backoff *kernel.Backoff) error {
	kind := newInstallations(options)
	if err := mgr.Add(kind.lookouts); err != nil {
		return fmt.Errorf("add the watches of what installations wait for: %w", err)
	}
	building := ctrl.NewControllerManagedBy(mgr).
		Named("moduleinstallation").
		For(&modulesv1.ModuleInstallation{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(&modulesv1.ModuleTemplate{}, options.Offers.OnTemplate()).
		Watches(&modulesv1.Module{}, options.Offers.OnModule()).
		WatchesMetadata(&corev1.Namespace{}, options.Offers.OnNamespace()).
		Watches(&sourcev1.OCIRepository{}, offers.OnSource[*sourcev1.OCIRepository](options.Offers)).
		Watches(&sourcev1.GitRepository{}, offers.OnSource[*sourcev1.GitRepository](options.Offers)).
		Watches(&modulesv1.ModuleInstallation{}, offers.Changes(0, onDependent)).
		WatchesMetadata(&corev1.ServiceAccount{}, offers.Changes(0, kind.onAccount)).
		WatchesMetadata(&modulesv1.Inventory{}, options.Records.OnInventory()).
		WatchesRawSource(ctrlsource.Func(options.Wakes.Start)).
		WithOptions(options.ControllerOptions(backoff))
	if offers.HasExternalArtifacts(mgr.GetRESTMapper()) {
		building.Watches(&sourcev1.ExternalArtifact{}, offers.OnSource[*sourcev1.ExternalArtifact](options.Offers))
	}
	if err := building.Complete(kernel.New(options.Shell, kind, modulesv1.InstallationFinalizer, backoff)); err != nil {
		return fmt.Errorf("set up the ModuleInstallation controller: %w", err)
	}
	return nil
}

// New implements kernel.Kind.
func (*installations) New() *modulesv1.ModuleInstallation { return &modulesv1.ModuleInstallation{} }

// View implements kernel.Kind.
func (*installations) View(obj *modulesv1.ModuleInstallation) kernel.View {
	return kernel.View{
		Suspended:              obj.Spec.Suspend,
		Interval:               obj.GetRequeueAfter(),
		RetryInterval:          obj.Spec.GetRetryInterval(),
		Timeout:                obj.Spec.GetTimeout(),
		Unreadable:             obj.UnreadableStatus,
		ObservedGeneration:     &obj.Status.ObservedGeneration,
		LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind. What the conditions say beside Ready is stated with each round.
func (*installations) Table() status.Table {
	return status.Table{Facts: []string{
		modulesv1.ResolvedCondition, modulesv1.UpToDateCondition, modulesv1.AppliedCondition, modulesv1.HealthyCondition,
		modulesv1.DeprecatedCondition, modulesv1.ContestedCondition, modulesv1.DeletionBlockedCondition,
		modulesv1.InventoryLostCondition,
	}, SuspendedReason: modulesv1.SuspendedReason}
}

// Finalize implements kernel.Owner: everything was dismantled.
func (k *installations) Finalize(_ context.Context, obj *modulesv1.ModuleInstallation) error {
	k.Forget(client.ObjectKeyFromObject(obj)) //nolint:contextcheck,nolintlint // What it ends does not live in a round.
	return nil
}

// Forget implements kernel.Forgetter.
func (k *installations) Forget(key client.ObjectKey) {
	k.lookouts.Set(key, nil)
	k.options.Engine.Forget(key.String())
	k.options.Records.Forget(key)
	k.options.Wakes.Forget(key)
	k.options.Offers.Need(key, nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.memories, key)
}

// memoryOf is what is remembered of this very object.
func (k *installations) memoryOf(obj *modulesv1.ModuleInstallation) *memory {
	key := client.ObjectKeyFromObject(obj)
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.memories[key]; known != nil && known.uid == obj.UID {
		return known
	}
	fresh := &memory{uid: obj.UID}
	k.memories[key] = fresh
	return fresh
}
