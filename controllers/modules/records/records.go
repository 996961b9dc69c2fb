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
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	mu sync.Mutex
	// known holds the last state of each, and nil for one that is known not to exist.
	known map[types.NamespacedName]*modulesv1.Inventory
	// vanished are those that were seen to go: the next look goes to the API server.
	vanished map[types.NamespacedName]bool
	// restored are those that were made again from memory, and not told of yet.
	restored map[types.NamespacedName]bool
	// changes counts what was written or forgotten: what was read before may be older than that.
	changes uint64
}

var _ engine.Records = (*Inventories)(nil)

// New returns records that are written with the client and read with the reader, which must not be a cache.
func New(writer client.Client, reader client.Reader, fieldOwner string) *Inventories {
	return &Inventories{
		client: writer, reader: reader, fieldOwner: fieldOwner,
		known:    map[types.NamespacedName]*modulesv1.Inventory{},
		vanished: map[types.NamespacedName]bool{}, restored: map[types.NamespacedName]bool{},
	}
}

// Load implements engine.Records. It gives exactly what is stored.
func (i *Inventories) Load(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	i.mu.Lock()
	remembered, known := i.known[key]
	before, vanished := i.changes, i.vanished[key]
	i.mu.Unlock()
	if known && !vanished {
		return remembered.DeepCopy(), nil
	}
	stored, err := i.Stored(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if stored == nil && remembered != nil {
		return i.reload(ctx, remembered.DeepCopy())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changes == before {
		i.known[key] = stored.DeepCopy()
		delete(i.vanished, key)
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

// Claiming implements engine.Records, for installations in all namespaces.
func (i *Inventories) Claiming(ctx context.Context, label string) ([]modulesv1.Inventory, error) {
	found := &modulesv1.InventoryList{}
	if err := i.reader.List(ctx, found, client.HasLabels{label}); err != nil {
		return nil, fmt.Errorf("list inventories with the label %s: %w", label, err)
	}
	for j := range found.Items {
		if one := &found.Items[j]; one.Undecodable != "" {
			return nil, fmt.Errorf("read inventory %s: %s", client.ObjectKeyFromObject(one), one.Undecodable)
		}
	}
	return found.Items, nil
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
	if apierrors.IsNotFound(err) {
		return i.restore(ctx, inventory)
	}
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

// Assume takes it that there is none, unless more is known. Should there be one all the same, creating another fails, and
// the next look finds it.
func (i *Inventories) Assume(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.known[key]; !known {
		i.known[key] = nil
	}
}

// Forget drops what is remembered of one; the next look at it goes to the API server.
func (i *Inventories) Forget(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.known, key)
	delete(i.vanished, key)
	i.changes++
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
	delete(i.vanished, key)
	i.changes++
}
