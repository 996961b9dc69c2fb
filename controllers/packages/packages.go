// Package packages holds the controllers of repositories, variants and revisions of config packages. A variant or a
// revision works out what it wants and orders it; its repository carries out all orders at once.
// It does not know how packages are merged and rendered, nor how they lie in Git.
package packages

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	lru "github.com/hashicorp/golang-lru/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/variant"
)

// Credentials reads the credentials that a spec refers to.
type Credentials interface {
	Git(ctx context.Context, request auth.GitRequest) (credential.Git, error)
	// Data gives the entries of a Secret that the field names.
	Data(ctx context.Context, namespace, secretName, field string) (map[string][]byte, error)
}

// Lookups reads objects of the cluster, and tells when they change.
type Lookups interface {
	Place(identity cluster.Identity, gvk schema.GroupVersionKind, namespace string) (string, error)
	Read(ctx context.Context, identity cluster.Identity, want lookups.Want) ([]*unstructured.Unstructured, error)
	Watch(owner types.NamespacedName, identity cluster.Identity, wants []lookups.Want)
	Forget(owner types.NamespacedName)
}

// Targets finds objects of the cluster, and tells when there are others.
type Targets interface {
	Place(identity cluster.Identity, gvk schema.GroupVersionKind, namespace string) (string, error)
	List(ctx context.Context, identity cluster.Identity, want lookups.Want) ([]*lookups.Object, error)
	Watch(owner types.NamespacedName, identity cluster.Identity, wants []lookups.Want)
	Forget(owner types.NamespacedName)
}

// Shared is what the controllers work with.
type Shared struct {
	kernel.Shell

	Depot       *pkgrepo.Depot
	Credentials Credentials
	Renderer    variant.Renderer
	Lookups     Lookups
	// SetLookups find the targets of sets.
	SetLookups Targets
	// Gates find what the waves of sets wait for.
	Gates Lookups
	// Previews read what would be injected into the variants of sets. Its owners are 'set/variant', as they are told to WakeSet.
	Previews Lookups
	// Slots bound how many packages are made at once. Memory and Files are what all work with Git draws from. Nil means no bound.
	Slots  *fair.Pool
	Memory *memory.Budget
	Files  *memory.Budget

	// Pipeline makes artifacts of open changes and of previews, and Artifact gives the address of a path. Revisions named on Rebuild
	// have lost theirs, and sets on RebuildSet.
	Pipeline   *source.Pipeline
	Artifact   func(path string) string
	Rebuild    <-chan ctrlevent.GenericEvent
	RebuildSet <-chan ctrlevent.GenericEvent
	// Changed is told of each change that a repository has carried out, or could not.
	Changed func(pkgrepo.Kind, error)
	// Compiled is told of each set whose expressions were compiled; nil for nobody.
	Compiled func()

	// Transport reaches the forges on which changes are reviewed, and Asked is told of each request to one with what came of it.
	Transport *transport.Factory
	Asked     func(provider forge.Provider, result string)

	// Plane is what the controllers share in memory.
	*Plane
	// DefaultServiceAccount reads what is injected for variants that name none; empty means that they have to.
	DefaultServiceAccount string
}

// inBudget works with memory and temporary files of the object's share. Work is run again where others have what it needs.
func (s Shared) inBudget(ctx context.Context, of conditions.Getter, work func(context.Context) error) error {
	wish := fair.Wish{Namespace: of.GetNamespace(), Unready: !conditions.IsReady(of)}
	return s.Files.Do(ctx, wish, nil, func(ctx context.Context) error { return s.Memory.Do(ctx, wish, nil, work) })
}

// Plane is what the controllers know of each other's objects.
type Plane struct {
	mirrors    *mirrors
	blueprints *blueprints
	desk       *desk
	signers    *signers
	reviews    *reviews
	descents   *lru.Cache[descent, bool]
	described  *lru.Cache[describedKey, *packagesv1.ChangeStatus]
	// repositories, variants, revisions and sets wake their objects.
	repositories, variants, revisions, sets *waker
}

// NewPlane returns a Plane that knows nothing yet.
func NewPlane() *Plane {
	p := &Plane{
		mirrors: newMirrors(), blueprints: newBlueprints(), signers: newSigners(), reviews: newReviews(),
		repositories: newWaker(), variants: newWaker(), revisions: newWaker(), sets: newWaker(),
	}
	p.descents, _ = lru.New[descent, bool](maxDescents) // It fails for a size below one alone.
	p.described, _ = lru.New[describedKey, *packagesv1.ChangeStatus](maxDescribed)
	p.desk = newDesk(p.repositories, map[string]*waker{ofVariant: p.variants, ofRevision: p.revisions, ofSet: p.sets})
	return p
}

// WakeVariant has a variant looked at.
func (p *Plane) WakeVariant(key types.NamespacedName) {
	p.desk.wakes(key)
	p.variants.wake(key)
}

// repository is what is known of a Repository. The error waits for one that does not exist, or is not known yet.
func (s Shared) repository(ctx context.Context, key types.NamespacedName) (*mirror, error) {
	var repository packagesv1.Repository
	err := s.Client.Get(ctx, key, &repository)
	if apierrors.IsNotFound(err) || err == nil && !repository.DeletionTimestamp.IsZero() {
		return nil, failure.Wait(packagesv1.RepositoryNotFoundReason, 0, fmt.Errorf("there is no Repository %s", key.Name))
	}
	if err != nil {
		return nil, fmt.Errorf("get Repository %s: %w", key.Name, err)
	}
	if repository.Spec.Suspend {
		return nil, failure.Wait(packagesv1.RepositoryNotReadyReason, 0, fmt.Errorf("repository %s is suspended", key.Name))
	}
	if m := s.mirrors.get(key); m != nil {
		return m, nil
	}
	return nil, notRead(key.Name)
}

// notRead waits for a Repository of which nothing is known.
func notRead(name string) error {
	return failure.Wait(packagesv1.RepositoryNotReadyReason, 0, fmt.Errorf("repository %s was not read yet; see its conditions", name))
}

// Setup adds the controllers of all kinds to the manager. Each kind has delays of its own.
func Setup(ctx context.Context, mgr ctrl.Manager, shared Shared, backoff func() *kernel.Backoff) error {
	if err := indexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index packages: %w", err)
	}
	for kind, setup := range map[string]func(ctrl.Manager, Shared, *kernel.Backoff) error{
		packagesv1.RepositoryKind: setupRepository, packagesv1.PackageVariantKind: setupVariant, packagesv1.PackageRevisionKind: setupRevision,
		packagesv1.PackageVariantSetKind: setupSet, "review": setupReviewer,
	} {
		if err := setup(mgr, shared, backoff()); err != nil {
			return fmt.Errorf("set up the %s controller: %w", kind, err)
		}
	}
	return nil
}

// The kinds of objects that give orders.
const (
	ofVariant  = "variant"
	ofRevision = "revision"
	ofSet      = "set"
)
