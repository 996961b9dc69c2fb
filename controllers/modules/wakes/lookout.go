package wakes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/internal/engine/cluster"
)

const (
	// lookoutRetry and lookoutRetryMax bound the time until a watch that cannot be opened, or that ended, is tried again.
	lookoutRetry    = time.Second
	lookoutRetryMax = time.Minute
	// lookoutPause is the least time between two wakes by one watch: what waits has to be judged again at each.
	lookoutPause = 500 * time.Millisecond
)

// connect opens the API server as an identity, for a kind; cluster.Connector's method of that name does.
type connect func(cluster.Identity, schema.GroupVersionKind) (metadata.Interface, *meta.RESTMapping, error)

// Awaited is what an installation waits for: an object of a name, or any object of a kind to go.
type Awaited struct {
	Identity cluster.Identity
	GVK      schema.GroupVersionKind
	// Namespace and Name are empty for every object of the kind in every namespace, of which only the end counts.
	Namespace, Name string
}

// Lookouts watch what installations wait for, and that is not theirs: dependencies, and the users' data that keeps them
// from being deleted. Nothing is watched for an installation that does not wait.
type Lookouts struct {
	connect connect
	wake    func(types.NamespacedName)

	mu     sync.Mutex
	closed bool
	active map[types.NamespacedName]map[Awaited]context.CancelFunc
}

// NewLookouts opens watches with the function, and wakes with the other.
func NewLookouts(open connect, wake func(types.NamespacedName)) *Lookouts {
	return &Lookouts{connect: open, wake: wake, active: map[types.NamespacedName]map[Awaited]context.CancelFunc{}}
}

// Set replaces what the installation waits for. A watch that goes on wakes nobody by that.
func (l *Lookouts) Set(key types.NamespacedName, wanted []Awaited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	running := l.active[key]
	next := map[Awaited]context.CancelFunc{}
	for _, a := range wanted {
		if stop, ok := running[a]; ok {
			next[a] = stop
			delete(running, a)
			continue
		}
		if next[a] != nil {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		next[a] = stop
		go l.look(ctx, key, a)
	}
	for _, stop := range running {
		stop()
	}
	if len(next) == 0 {
		delete(l.active, key)
		return
	}
	l.active[key] = next
}

// Start implements manager.Runnable: the watches end with the manager.
func (l *Lookouts) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for key, running := range l.active {
		for _, stop := range running {
			stop()
		}
		delete(l.active, key)
	}
	return nil
}

// look watches until it is stopped, and wakes the installation with every watch that opens: what happened before is
// seen by looking.
func (l *Lookouts) look(ctx context.Context, key types.NamespacedName, a Awaited) {
	backoff := patient()
	for ctx.Err() == nil {
		err := l.watch(ctx, key, a)
		if err == nil {
			backoff = patient()
		} else {
			ctrl.Log.V(1).Info("cannot watch what an installation waits for; it looks again by itself",
				"installation", key, "kind", a.GVK, "name", a.Name, "cause", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// patient is the delays between attempts to watch.
func patient() wait.Backoff {
	return wait.Backoff{Duration: lookoutRetry, Factor: 2, Jitter: 0.2, Steps: 16, Cap: lookoutRetryMax}
}

// watch watches once, until the API server ends it.
func (l *Lookouts) watch(ctx context.Context, key types.NamespacedName, a Awaited) error {
	client, mapping, err := l.connect(a.Identity, a.GVK)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{}
	namespace := ""
	if a.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, a.Name).String()
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = a.Namespace
		}
	}
	stream, err := client.Resource(mapping.Resource).Namespace(namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	defer stream.Stop()
	l.wake(key)
	for event := range stream.ResultChan() {
		switch {
		case event.Type == apiwatch.Error:
			return fmt.Errorf("watch ended: %v", event.Object)
		case event.Type == apiwatch.Bookmark, a.Name == "" && event.Type != apiwatch.Deleted:
			continue
		}
		l.wake(key)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookoutPause):
		}
	}
	return nil
}
