// Package engine brings a cluster to what a release holds, and keeps it there: it determines the state, chooses the
// next action, does it, and looks again. It does not know how a release is chosen, what a condition is, or who calls.
package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
)

// Engine installs releases and keeps them. It is safe for concurrent use; rounds of one installation follow each other.
type Engine struct {
	parts    Parts
	options  Options
	clock    clock.PassiveClock
	library  *health.Library
	renders  renders
	memories sync.Map
}

// Parts are what an Engine is made of; all are required, apart from the Watcher of one that is made for previews.
type Parts struct {
	Connector *cluster.Connector
	Watcher   *watch.Watcher
	Cache     *fetch.Cache
	Builder   *build.Builder
	Records   Records
}

// Observer learns what the engine does. Its methods are called from many goroutines.
type Observer interface {
	// Did says that an action of a round ended, such as apply or heal, after how long, and how.
	Did(action string, took time.Duration, err error)
	// Rendered says that a release was rendered, rather than known from before.
	Rendered(took time.Duration, err error)
}

// Options tune an Engine. Zero values mean the defaults.
type Options struct {
	// Clock is the time that attempts, verification and back-off go by. Default: the real one.
	Clock clock.PassiveClock
	// RenderBytes is what rendered objects may take of the memory, all rounds together; a round whose turn does not come
	// within RenderPatience waits for the next one. Defaults 480 MiB and 10 s.
	RenderBytes    int64
	RenderPatience time.Duration
	// HealthCost is what health expressions may cost in a round, in CEL's units of work, before it leaves the rest to the
	// next one. Default 2,000,000: about a second.
	HealthCost uint64
	// Observer may be nil.
	Observer Observer
}

// New returns an Engine. The error says which part is missing.
func New(parts Parts, options Options) (*Engine, error) {
	if parts.Watcher == nil {
		return nil, errors.New("an engine needs a watcher")
	}
	return newEngine(parts, options)
}

// NewForPreviews returns an Engine for Plan and Preview alone, which needs no Watcher: it looks at objects instead, and its
// Reconcile is an error. The error says which part is missing.
func NewForPreviews(parts Parts, options Options) (*Engine, error) {
	parts.Watcher = nil
	return newEngine(parts, options)
}

// errUnseeing says that an engine has no watcher.
var errUnseeing = errors.New("an engine that is made for previews reconciles nothing")

func newEngine(parts Parts, options Options) (*Engine, error) {
	if parts.Connector == nil || parts.Cache == nil || parts.Builder == nil || parts.Records == nil {
		return nil, errors.New("an engine needs a connector, a cache, a builder and records")
	}
	options.Clock = cmp.Or[clock.PassiveClock](options.Clock, clock.RealClock{})
	options.RenderBytes = cmp.Or(options.RenderBytes, 480<<20)
	options.RenderPatience = cmp.Or(options.RenderPatience, 10*time.Second)
	options.HealthCost = cmp.Or(options.HealthCost, 2_000_000)
	known, err := lru.New[string, rendered](maxRenders)
	if err != nil {
		return nil, err
	}
	library, err := health.NewLibrary()
	if err != nil {
		return nil, err
	}
	return &Engine{
		parts: parts, options: options, clock: options.Clock, library: library,
		renders: renders{parts.Cache, parts.Builder, options, known, fair.New(options.RenderBytes, maxQueue)},
	}, nil
}

// failedAgain is how soon at least a round follows one that failed.
const failedAgain = 5 * time.Second

// Reconcile does one bounded round for the installation, and never waits for what takes its time: it says so in the
// outcome instead. It may be called again after a crash at any point. Errors are StageErrors around a failure with one
// of modulesv1's reasons; the outcome beside one is what was reached.
func (e *Engine) Reconcile(ctx context.Context, in Installation) (Outcome, error) {
	if e.parts.Watcher == nil {
		return Outcome{}, failure.At(StageRecord, errUnseeing)
	}
	r, end := e.round(in)
	defer end()
	err := r.run(ctx)
	err = cmp.Or(err, r.noteRights(ctx))
	out := r.conclude()
	if found := failure.Of(err); err != nil && found.Disposition == failure.Retries && out.Again > 0 {
		// What was refused is asked for again as well.
		out.Again = max(out.Again, failedAgain)
	}
	return out, err
}

// Forget drops what is remembered of an installation and stops watching for it; key is namespace/name. It is for
// installations that are gone without a deletion, or belong to another process now.
func (e *Engine) Forget(key string) {
	if e.parts.Watcher != nil {
		e.parts.Watcher.Want(key, "", nil)
	}
	e.memories.Delete(key)
}

// Installation is what a round works on: what is wanted, and as whom.
type Installation struct {
	Name, Namespace, UID string
	// Spec is the ModuleInstallation's. Module and Upgrade are not read: whoever calls has chosen.
	Spec modulesv1.ModuleInstallationSpec
	// Self is the whole object, for the expressions in dependsOn. It may be nil where there are none.
	Self *unstructured.Unstructured
	// Identity is as whom members, and objects in dependsOn, are read and written.
	Identity cluster.Identity
	// Deleting says that the installation is to go. Neither Target nor Current is needed then.
	Deleting bool
	// Target is the release to install; nil holds what is recorded.
	Target *Target
	// Current is how to get the release that the Inventory records: that of its attempt if it has one, else its current
	// one. It heals, and goes on with an attempt, while Target is nil; nil means that this cannot be done now.
	Current *Target
	// Variables are all values for substitution: those of substituteFrom, and over them spec.config.substitute.
	Variables map[string]string
	// Choice is recorded in the Inventory, a change of it alone at once; nil leaves what is recorded.
	Choice *modulesv1.CatalogChoice
	// Verify asks for a full verification in this round: every member is applied once.
	Verify bool
}

// Key names the installation to the watcher: namespace/name.
func (in Installation) Key() string { return in.Namespace + "/" + in.Name }

// interval is the time between two rounds.
func (in Installation) interval() time.Duration {
	return (&modulesv1.ModuleInstallation{Spec: in.Spec}).GetRequeueAfter()
}

// patience is how long a deletion waits for rights.
func (in Installation) patience() time.Duration { return max(in.Spec.GetTimeout(), time.Minute) }

// Target is a release, and all that is needed to install it.
type Target struct {
	// Release is what is recorded. Its Digest is the artifact's; AppliedAt and HealthyAt are the engine's to set.
	Release  modulesv1.Release
	Artifact fetch.Artifact
	// Path is the folder in the artifact; "" is its root.
	Path string
	// Deletion is the template's mode; "" means Block.
	Deletion         modulesv1.DeletionMode
	ManagedResources []modulesv1.ManagedResource
	// DefaultConfig may be nil. Without a namespace it goes to the installation's, if its kind has namespaces.
	DefaultConfig *unstructured.Unstructured
	Health        []modulesv1.HealthExpression
	// Seal is asked before an attempt begins; its error puts that off. It may be nil.
	Seal func(context.Context) error
}

// Records keeps Inventories, as the controller. They are all that the engine does not do as the installation's identity.
type Records interface {
	// Load gives the Inventory as it was written last, which is not changed here; nil without an error for none.
	Load(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error)
	// Stored is Load for another installation's Inventory: what is stored now, since another process may write it.
	Stored(ctx context.Context, namespace, name string) (*modulesv1.Inventory, error)
	// List gives the Inventories that carry the label, as they are stored: those of the namespace, or of all that this
	// process works for when it is "". An empty label is carried by all.
	List(ctx context.Context, namespace, label string) ([]modulesv1.Inventory, error)
	// Create stores a new one, and fills in its resourceVersion. Labels and owner are the implementation's to set.
	Create(ctx context.Context, inventory *modulesv1.Inventory) error
	// Update replaces it if its resourceVersion still is the stored one, and fills in the new one.
	Update(ctx context.Context, inventory *modulesv1.Inventory) error
	// Delete removes it; that it is gone already is no error.
	Delete(ctx context.Context, inventory *modulesv1.Inventory) error
}
