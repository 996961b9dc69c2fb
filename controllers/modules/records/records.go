// Package records keeps the Inventories of installations.
// It does not know what they say.
package records

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// +kubebuilder:rbac:groups=modules.sluice.dev,resources=inventories,verbs=get;list;watch;create;update;delete

// Inventories keeps the Inventories of installations: what the engine remembers across crashes. The first look at one
// goes to the API server, past every cache; from then on it is in memory, as only this process writes it.
type Inventories struct {
	client     client.Client
	reader     client.Reader
	fieldOwner string
	// namespaces are those that this process works for; none for all.
	namespaces []string

	mu sync.Mutex
	// known holds the last state of each, and nil for one that is known not to exist.
	known map[types.NamespacedName]*modulesv1.Inventory
	// changes counts what was written or forgotten: what was read before may be older than that.
	changes uint64
}

var _ engine.Records = (*Inventories)(nil)

// New returns records that are written with the client and read with the reader, which must not be a cache. A process that
// works for some namespaces alone names them: it may have no right to more.
func New(writer client.Client, reader client.Reader, fieldOwner string, namespaces ...string) *Inventories {
	return &Inventories{
		client: writer, reader: reader, fieldOwner: fieldOwner, namespaces: namespaces,
		known: map[types.NamespacedName]*modulesv1.Inventory{},
	}
}

// Load implements engine.Records. It gives exactly what is stored.
func (i *Inventories) Load(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	i.mu.Lock()
	remembered, known := i.known[key]
	before := i.changes
	i.mu.Unlock()
	if known {
		return remembered.DeepCopy(), nil
	}
	stored, err := i.Stored(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changes == before {
		i.known[key] = stored.DeepCopy()
	}
	return stored, nil
}

// Stored implements engine.Records. Nothing of it is remembered: a controller for another namespace may write it, and
// whoever labels an object names what is looked up.
func (i *Inventories) Stored(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	key, inventory := types.NamespacedName{Namespace: namespace, Name: name}, &modulesv1.Inventory{}
	switch err := i.reader.Get(ctx, key, inventory); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read inventory %s: %w", key, err)
	case inventory.Undecodable != "":
		// Whoever took it for empty would forget what is installed.
		return nil, fmt.Errorf("read inventory %s: %s", key, inventory.Undecodable)
	}
	return inventory, nil
}

// List implements engine.Records.
func (i *Inventories) List(ctx context.Context, namespace, label string) ([]modulesv1.Inventory, error) {
	from := i.namespaces
	if namespace != "" || len(from) == 0 {
		from = []string{namespace}
	}
	var options []client.ListOption
	if label != "" {
		options = append(options, client.HasLabels{label})
	}
	var all []modulesv1.Inventory
	for _, namespace := range from {
		found := &modulesv1.InventoryList{}
		if err := i.reader.List(ctx, found, append(options, client.InNamespace(namespace))...); err != nil {
			return nil, fmt.Errorf("list inventories: %w", err)
		}
		all = append(all, found.Items...)
	}
	for j := range all {
		if one := &all[j]; one.Undecodable != "" {
			return nil, fmt.Errorf("read inventory %s: %s", client.ObjectKeyFromObject(one), one.Undecodable)
		}
	}
	return all, nil
}

// Create implements engine.Records. The finalizer keeps the record for as long as it is needed: garbage collection
// would remove it before the installation, if that is deleted in the foreground.
func (i *Inventories) Create(ctx context.Context, inventory *modulesv1.Inventory) error {
	inventory.Labels = map[string]string{"app.kubernetes.io/managed-by": i.fieldOwner}
	inventory.Finalizers = []string{modulesv1.InstallationFinalizer}
	inventory.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind,
		Name: inventory.Name, UID: types.UID(inventory.Data.InstallationUID), Controller: new(true),
	}}
	err := i.client.Create(ctx, inventory, client.FieldOwner(i.fieldOwner))
	return i.written(inventory, "create", err)
}

// Update implements engine.Records.
func (i *Inventories) Update(ctx context.Context, inventory *modulesv1.Inventory) error {
	err := i.client.Update(ctx, inventory, client.FieldOwner(i.fieldOwner))
	return i.written(inventory, "update", err)
}

// Delete implements engine.Records.
func (i *Inventories) Delete(ctx context.Context, inventory *modulesv1.Inventory) error {
	key := client.ObjectKeyFromObject(inventory)
	i.Forget(key)
	if err := i.delete(ctx, inventory); err != nil {
		return fmt.Errorf("delete inventory %s: %w", key, err)
	}
	i.remember(key, nil)
	return nil
}

func (i *Inventories) delete(ctx context.Context, inventory *modulesv1.Inventory) error {
	if err := i.unname(ctx, inventory); err != nil {
		return err
	}
	if slices.Contains(inventory.Finalizers, modulesv1.InstallationFinalizer) {
		released := inventory.DeepCopy()
		released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == modulesv1.InstallationFinalizer })
		if err := i.client.Update(ctx, released, client.FieldOwner(i.fieldOwner)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(i.client.Delete(ctx, inventory, client.Preconditions{UID: &inventory.UID}))
}

// unname takes the record out of the installation's status before it goes: whoever finds it gone after a crash knows then
// that it was not lost. The installation may be gone already, or be another one by now.
func (i *Inventories) unname(ctx context.Context, inventory *modulesv1.Inventory) error {
	installation := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: inventory.Namespace, Name: inventory.Name}}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"inventory":null}}`, inventory.Data.InstallationUID)
	err := i.client.Status().Patch(ctx, installation, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(i.fieldOwner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Forget drops what is remembered of one; the next look at it goes to the API server.
func (i *Inventories) Forget(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.known, key)
	i.changes++
}

// OnInventory wakes the installation whose Inventory has gone. The finalizer keeps it for as long as it is needed, so that
// somebody has removed it by force: nothing is known any more. The objects are metadata.
func (i *Inventories) OnInventory() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		key := client.ObjectKeyFromObject(e.Object)
		if i.remembers(key, e.Object.GetUID()) {
			i.Forget(key)
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}}
}

func (i *Inventories) remembers(key types.NamespacedName, uid types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known[key] != nil && i.known[key].UID == uid
}

// written remembers what a write has stored. After an error nobody knows whether it did.
func (i *Inventories) written(inventory *modulesv1.Inventory, verb string, err error) error {
	key := client.ObjectKeyFromObject(inventory)
	if err != nil {
		i.Forget(key)
		return fmt.Errorf("%s inventory %s: %w", verb, key, err)
	}
	i.remember(key, inventory.DeepCopy())
	return nil
}

func (i *Inventories) remember(key types.NamespacedName, inventory *modulesv1.Inventory) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[key] = inventory
	i.changes++
}
