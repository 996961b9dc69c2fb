package plan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// records reads Inventories as whoever asks. Where that is forbidden, what is installed is found by its label: nothing says then
// what was rendered last, so that each object is compared with the cluster.
type records struct {
	reader       client.Reader
	members      func(context.Context) ([]modulesv1.Member, error)
	installation *modulesv1.ModuleInstallation
	// unread says that the Inventory may not be read.
	unread bool
}

var errReadOnly = errors.New("a plan writes no record")

// Load implements engine.Records.
func (r *records) Load(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	found := &modulesv1.Inventory{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err) && name == r.installation.Name && namespace == r.installation.Namespace:
		r.unread = true
		return r.byLabel(ctx)
	case err != nil:
		return nil, fmt.Errorf("read Inventory %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

// byLabel is a record of what is there, without what it was rendered from.
func (r *records) byLabel(ctx context.Context) (*modulesv1.Inventory, error) {
	if r.installation.Status.Current == nil {
		return nil, nil
	}
	members, err := r.members(ctx)
	if err != nil {
		return nil, err
	}
	made := &modulesv1.Inventory{}
	made.Namespace, made.Name = r.installation.Namespace, r.installation.Name
	made.Data = modulesv1.InventoryData{
		InstallationUID: string(r.installation.UID), Phase: modulesv1.PhaseInstalled, Salt: "unknown", Members: members,
	}
	return made, nil
}

// Stored implements engine.Records.
func (r *records) Stored(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error) {
	return r.Load(ctx, namespace, name)
}

// List implements engine.Records.
func (r *records) List(ctx context.Context, namespace, label string) ([]modulesv1.Inventory, error) {
	var list modulesv1.InventoryList
	options := []client.ListOption{client.InNamespace(namespace)}
	if label != "" {
		options = append(options, client.HasLabels{label})
	}
	err := r.reader.List(ctx, &list, options...)
	if apierrors.IsForbidden(err) {
		return nil, nil // Whom an object may be handed over to is not known then.
	}
	if err != nil {
		return nil, fmt.Errorf("list Inventories: %w", err)
	}
	return list.Items, nil
}

// Create implements engine.Records.
func (r *records) Create(context.Context, *modulesv1.Inventory) error { return errReadOnly }

// Update implements engine.Records.
func (r *records) Update(context.Context, *modulesv1.Inventory) error { return errReadOnly }

// Delete implements engine.Records.
func (r *records) Delete(context.Context, *modulesv1.Inventory) error { return errReadOnly }

var _ engine.Records = (*records)(nil)
