package modules

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
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=modules.sluice.dev,resources=moduleinstallations/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;impersonate
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Rounds is what does the work in the cluster; engine.Engine is it.
type Rounds interface {
	Reconcile(ctx context.Context, in engine.Installation) (engine.Outcome, error)
	Plan(ctx context.Context, in engine.Installation) (modulesv1.Plan, error)
	Begun(ctx context.Context, in engine.Installation) (bool, error)
	Forget(key string)
}

// InstallationOptions say what the controller of installations works with, and as whom. All are required but the last
// two.
type InstallationOptions struct {
	Engine  Rounds
	Records *Inventories
	// Connector gives the clients of the identities that installations work as.
	Connector *cluster.Connector
	// Reader reads past the cache, as the controller itself.
	Reader client.Reader
	// Wakes is what the engine's watcher tells of changes.
	Wakes *Wakes
	// DefaultServiceAccount is the account, in an installation's own namespace, of those that name none.
	DefaultServiceAccount string
	// AllowOwnIdentity lets installations without an account work as the controller.
	AllowOwnIdentity bool
}

// installations makes ModuleInstallation a kernel.Kind.
type installations struct {
	shared   Shared
	options  InstallationOptions
	lookouts *lookouts

	mu       sync.Mutex
	memories map[types.NamespacedName]*memory
}

// memory is what is remembered of one installation between rounds, to save requests. All of it can be lost. Only the
// round of the installation touches it.
type memory struct {
	uid       types.UID
	variables *variables
	planned   *planned
	awaited   []awaited
	// untold is what the engine did since a round could last be reported: a report that comes too late is made again,
	// and what was done is not.
	untold []engine.Note
}

// maxUntold bounds what is kept to be told.
const maxUntold = 64

// note keeps what the engine did until it is told.
func (m *memory) note(notes []engine.Note) {
	m.untold = append(m.untold, notes...)
	m.untold = m.untold[max(0, len(m.untold)-maxUntold):]
}

var (
	_ kernel.Kind[*modulesv1.ModuleInstallation, round]       = (*installations)(nil)
	_ kernel.Dismantler[*modulesv1.ModuleInstallation, round] = (*installations)(nil)
	_ kernel.Forgetter                                        = (*installations)(nil)
	_ Rounds                                                  = (*engine.Engine)(nil)
)

// newInstallations returns the kind.
func newInstallations(shared Shared, options InstallationOptions) *installations {
	return &installations{
		shared: shared, options: options,
		lookouts: newLookouts(options.Connector.Connect, options.Wakes.Wake),
		memories: map[types.NamespacedName]*memory{},
	}
}

// SetupModuleInstallation adds the controller of ModuleInstallation objects to the manager. The fields of the catalogue
// have to be indexed already.
func SetupModuleInstallation(mgr ctrl.Manager, shared Shared, options InstallationOptions, backoff *kernel.Backoff) error {
	kind, catalogue := newInstallations(shared, options), shared.Catalogue
	if err := mgr.Add(kind.lookouts); err != nil {
		return fmt.Errorf("add the watches of what installations wait for: %w", err)
	}
	building := ctrl.NewControllerManagedBy(mgr).
		Named("moduleinstallation").
		For(&modulesv1.ModuleInstallation{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(&modulesv1.ModuleTemplate{}, catalogue.OnTemplate()).
		Watches(&modulesv1.Module{}, catalogue.OnModule()).
		WatchesMetadata(&corev1.Namespace{}, catalogue.OnNamespace()).
		Watches(&sourcev1.OCIRepository{}, OnSource[*sourcev1.OCIRepository](catalogue)).
		Watches(&sourcev1.GitRepository{}, OnSource[*sourcev1.GitRepository](catalogue)).
		WatchesMetadata(&modulesv1.Inventory{}, options.Records.OnInventory()).
		WatchesRawSource(ctrlsource.Func(options.Wakes.start)).
		WithOptions(shared.ControllerOptions(backoff))
	if err := building.Complete(kernel.New(shared.Shell, kind, modulesv1.InstallationFinalizer, backoff)); err != nil {
		return fmt.Errorf("set up the ModuleInstallation controller: %w", err)
	}
	return nil
}

// New implements kernel.Kind.
func (*installations) New() *modulesv1.ModuleInstallation { return &modulesv1.ModuleInstallation{} }

// Start implements kernel.Starter: what nobody has worked on has no record, which saves the look for it.
func (k *installations) Start(key client.ObjectKey) { k.options.Records.Assume(key) }

// View implements kernel.Kind.
func (*installations) View(obj *modulesv1.ModuleInstallation) kernel.View {
	return kernel.View{
		Suspended:              obj.Spec.Suspend,
		Interval:               obj.GetRequeueAfter(),
		RetryInterval:          obj.Spec.GetRetryInterval(),
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
	}}
}

// Finalize implements kernel.Kind: everything was dismantled.
func (k *installations) Finalize(_ context.Context, obj *modulesv1.ModuleInstallation) error {
	k.Forget(client.ObjectKeyFromObject(obj)) //nolint:contextcheck // What it ends does not live in a round.
	return nil
}

// Forget implements kernel.Forgetter.
func (k *installations) Forget(key client.ObjectKey) {
	k.lookouts.set(key, nil)
	k.options.Engine.Forget(key.String())
	k.options.Records.Forget(key)
	k.options.Wakes.forget(key)
	k.shared.Catalogue.needs.replace(key, nil)
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
