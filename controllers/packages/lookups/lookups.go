// Package lookups reads objects of the cluster for those who take over what is in them, and tells when these change.
// It does not know what is taken over, or what becomes of it.
package lookups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/engine/cluster"
)

// maxSelected is how many objects a selector may find. More are as ambiguous as two.
const maxSelected = 10

// Want is what somebody looks for: the object of a name, or those that a selector selects.
type Want struct {
	GVK schema.GroupVersionKind
	// Namespace is empty for kinds that live in none.
	Namespace string
	Name      string
	// Selector is looked at where there is no name.
	Selector labels.Selector
}

func (w Want) matches(object metav1.Object) bool {
	if w.Name != "" {
		return object.GetName() == w.Name
	}
	return w.Selector.Matches(labels.Set(object.GetLabels()))
}

// Lookups reads objects as the ServiceAccounts of those who want them. It is safe for concurrent use.
type Lookups struct {
	places

	notify func(owner types.NamespacedName)
	log    logr.Logger

	mu      sync.Mutex
	watches map[subject]*watching
	// wanted are the wants of each owner.
	wanted map[types.NamespacedName]map[subject][]Want
}

// subject is what is watched once for all who want something of it.
type subject struct {
	identity  cluster.Identity
	gvk       schema.GroupVersionKind
	namespace string
}

// New returns Lookups that tell notify whose objects have changed. It is called without locks, and must not wait.
func New(connector *cluster.Connector, notify func(owner types.NamespacedName), log logr.Logger) *Lookups {
	return &Lookups{
		places: places{connector}, notify: notify, log: log,
		watches: map[subject]*watching{}, wanted: map[types.NamespacedName]map[subject][]Want{},
	}
}

// Watch has the owner told of changes of what it wants, and of nothing else from now on.
func (l *Lookups) Watch(owner types.NamespacedName, identity cluster.Identity, wants []Want) {
	bySubject := map[subject][]Want{}
	for _, want := range wants {
		s := subject{identity, want.GVK, want.Namespace}
		bySubject[s] = append(bySubject[s], want)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.wanted[owner]
	if len(bySubject) == 0 {
		delete(l.wanted, owner)
	} else {
		l.wanted[owner] = bySubject
	}
	for s := range bySubject {
		l.begin(s, owner)
	}
	for s := range before {
		if _, still := bySubject[s]; !still {
			l.leave(s, owner)
		}
	}
}

// Forget ends what is watched for an owner that is gone.
func (l *Lookups) Forget(owner types.NamespacedName) { l.Watch(owner, cluster.Identity{}, nil) }

// places say where objects are.
type places struct{ connector *cluster.Connector }

// Place is where objects of the kind are looked for: nowhere in particular if they live in no namespace, or if the API server
// knows no such kind.
func (l places) Place(identity cluster.Identity, gvk schema.GroupVersionKind, namespace string) (string, error) {
	client, err := l.connector.As(identity)
	if err != nil {
		return "", err
	}
	switch inNamespace, err := client.Namespaced(gvk); {
	case errors.Is(err, cluster.ErrNoKind):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask for the kind %s: %w", gvk.Kind, err)
	case inNamespace:
		return namespace, nil
	}
	return "", nil
}

// Read reads what is wanted as it is now. Nothing found is no error; one that the identity may not read is, as the API
// server says it.
func (l *Lookups) Read(ctx context.Context, identity cluster.Identity, want Want) ([]*unstructured.Unstructured, error) {
	client, err := l.connector.As(identity)
	if err != nil {
		return nil, err
	}
	if want.Name != "" {
		object, err := client.Get(ctx, cluster.Ref{GVK: want.GVK, Namespace: want.Namespace, Name: want.Name})
		if errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrNoKind) {
			return nil, nil
		}
		if err != nil {
			return nil, err // It says what was asked, of what and as whom.
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var found []*unstructured.Unstructured
	err = client.Objects(ctx, want.GVK, want.Namespace, want.Selector.String(), func(object *unstructured.Unstructured) {
		if len(found) < maxSelected {
			found = append(found, object.DeepCopy())
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

// changed tells those who want an object that it has changed.
func (l *Lookups) changed(s subject, objects ...metav1.Object) {
	l.mu.Lock()
	var owners []types.NamespacedName
	if w := l.watches[s]; w != nil {
		for owner := range w.owners {
			if slices.ContainsFunc(l.wanted[owner][s], func(want Want) bool { return slices.ContainsFunc(objects, want.matches) }) {
				owners = append(owners, owner)
			}
		}
	}
	l.mu.Unlock()
	for _, owner := range owners {
		l.notify(owner)
	}
}
