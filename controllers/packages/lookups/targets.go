package lookups

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/engine/cluster"
)

// MaxTargets bounds the objects that may be selected at once.
const MaxTargets = 10_000

// ErrTooMany says that more objects are selected than may be.
var ErrTooMany = errors.New("more objects are selected than a set may have targets")

// Targets keep objects that are selected in memory, as long as somebody wants them: only what may be seen of them. A round
// that asks for them asks the API server nothing. They are safe for concurrent use.
type Targets struct {
	places

	notify func(owner types.NamespacedName)
	log    logr.Logger

	mu     sync.Mutex
	stores map[selection]*store
	// wanted are the selections of each owner.
	wanted  map[types.NamespacedName]map[selection]struct{}
	allowed Allowed
	// isKnown is closed as soon as it is known what may be seen.
	isKnown chan struct{}
	told    bool
}

// selection is what is watched once for all who want it.
type selection struct {
	identity     cluster.Identity
	gvk          schema.GroupVersionKind
	namespace    string
	labels, name string
}

func selectionOf(identity cluster.Identity, want Want) selection {
	s := selection{identity: identity, gvk: want.GVK, namespace: want.Namespace, labels: want.Selector.String()}
	if want.Name != "" {
		s.name = fields.OneTermEqualSelector("metadata.name", want.Name).String()
	}
	return s
}

// NewTargets returns Targets that tell notify whose objects have changed. They wait to be told what may be seen. Notify is called
// without locks, and must not wait.
func NewTargets(connector *cluster.Connector, notify func(owner types.NamespacedName), log logr.Logger) *Targets {
	return &Targets{
		places: places{connector}, notify: notify, log: log, isKnown: make(chan struct{}),
		stores: map[selection]*store{}, wanted: map[types.NamespacedName]map[selection]struct{}{},
	}
}

// Watch keeps what the owner wants, has it told of changes, and of nothing else from now on.
func (t *Targets) Watch(owner types.NamespacedName, identity cluster.Identity, wants []Want) {
	now := make(map[selection]struct{}, len(wants))
	for _, want := range wants {
		now[selectionOf(identity, want)] = struct{}{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.wanted[owner]
	if t.wanted[owner] = now; len(now) == 0 {
		delete(t.wanted, owner)
	}
	for s := range now {
		if t.stores[s] == nil {
			t.stores[s] = t.begin(s)
		}
		t.stores[s].owners[owner] = struct{}{}
	}
	for s := range before {
		if _, still := now[s]; still || t.stores[s] == nil {
			continue
		}
		if delete(t.stores[s].owners, owner); len(t.stores[s].owners) == 0 {
			t.stores[s].stop()
			delete(t.stores, s)
		}
	}
}

// Forget ends what is kept for an owner that is gone.
func (t *Targets) Forget(owner types.NamespacedName) { t.Watch(owner, cluster.Identity{}, nil) }

// Close ends all watches.
func (t *Targets) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, kept := range t.stores {
		kept.stop()
		delete(t.stores, s)
	}
}

// Allow says what may be seen of objects from now on. Those of which that is something else are read anew.
func (t *Targets) Allow(allowed Allowed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.allowed
	if t.allowed = allowed; !t.told {
		t.told = true
		close(t.isKnown)
		return
	}
	for s, kept := range t.stores {
		if !reflect.DeepEqual(before[s.gvk], allowed[s.gvk]) {
			kept.stop()
			owners := kept.owners
			t.stores[s] = t.begin(s)
			t.stores[s].owners = owners
			for owner := range owners {
				go t.notify(owner)
			}
		}
	}
}

// List is what is wanted as it is now. Whoever lists has to watch. The objects are shared: nobody may change them. Errors are those
// of the API server, and ErrTooMany; after one, it is tried again.
func (t *Targets) List(ctx context.Context, identity cluster.Identity, want Want) ([]*Object, error) {
	s := selectionOf(identity, want)
	t.mu.Lock()
	kept := t.stores[s]
	t.mu.Unlock()
	if kept == nil {
		return nil, fmt.Errorf("nobody watches %s", s.gvk.Kind)
	}
	return kept.list(ctx)
}

// begin follows what is selected. The lock is held.
func (t *Targets) begin(s selection) *store {
	ctx, stop := context.WithCancel(context.Background())
	kept := &store{owners: map[types.NamespacedName]struct{}{}, stop: stop, again: make(chan struct{}, 1), settled: make(chan struct{})}
	kept.changed = func() { t.tell(s, kept) }
	go t.keep(ctx, s, kept)
	return kept
}

// keep follows until ctx ends. What cannot be followed is tried again when somebody asks for it.
func (t *Targets) keep(ctx context.Context, s selection, kept *store) {
	select {
	case <-ctx.Done():
		return
	case <-t.isKnown:
	}
	t.mu.Lock()
	seen := t.allowed[s.gvk]
	t.mu.Unlock()
	for ctx.Err() == nil {
		err := t.follow(ctx, s, seen, kept)
		if ctx.Err() != nil {
			return
		}
		kept.fail(err)
		t.log.V(1).Info("cannot watch targets", "kind", s.gvk.String(), "namespace", s.namespace, "as", s.identity.String(), "cause", err.Error())
		select {
		case <-ctx.Done():
		case <-kept.again: // Somebody asks as often as he likes: what kinds there are is not looked at each time.
		case <-time.After(lateness):
			t.connector.Refresh()
		}
	}
}

// tell tells those who want something of the store that it has changed.
func (t *Targets) tell(s selection, kept *store) {
	t.mu.Lock()
	var owners []types.NamespacedName
	if t.stores[s] == kept {
		for owner := range kept.owners {
			owners = append(owners, owner)
		}
	}
	t.mu.Unlock()
	for _, owner := range owners {
		t.notify(owner)
	}
}
