package lookups

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// lateness is how long a subject that cannot be watched is left alone.
const lateness = 5 * time.Minute

// watching is the watch of a subject: only of metadata, as whoever hears of a change reads the object.
type watching struct {
	owners map[types.NamespacedName]struct{}
	stop   context.CancelFunc
}

// begin watches the subject for one more owner. The lock is held.
func (l *Lookups) begin(s subject, owner types.NamespacedName) {
	w := l.watches[s]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watching{owners: map[types.NamespacedName]struct{}{}, stop: stop}
		l.watches[s] = w
		go l.watch(ctx, s)
	}
	w.owners[owner] = struct{}{}
}

// leave ends the watch with its last owner. The lock is held.
func (l *Lookups) leave(s subject, owner types.NamespacedName) {
	w := l.watches[s]
	if w == nil {
		return
	}
	delete(w.owners, owner)
	if len(w.owners) == 0 {
		w.stop()
		delete(l.watches, s)
	}
}

// Close ends all watches.
func (l *Lookups) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, w := range l.watches {
		w.stop()
		delete(l.watches, s)
	}
}

// watch watches until ctx ends. What cannot be watched is tried again; until then it is noticed at the owners' intervals.
func (l *Lookups) watch(ctx context.Context, s subject) {
	for ctx.Err() == nil {
		client, mapping, err := l.connector.Connect(s.identity, s.gvk)
		if err == nil {
			informer := metadatainformer.NewFilteredMetadataInformer(client, mapping.Resource, s.namespace, 0, cache.Indexers{}, nil).Informer()
			if err = l.follow(ctx, s, informer); err == nil {
				return
			}
		}
		l.log.V(1).Info("cannot watch what is injected; it is looked at with each interval",
			"kind", s.gvk.String(), "namespace", s.namespace, "as", s.identity.String(), "cause", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(lateness):
			l.connector.Refresh()
		}
	}
}

// follow runs the informer until ctx ends. Its error says that nothing can be watched.
func (l *Lookups) follow(ctx context.Context, s subject, informer cache.SharedIndexInformer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := informer.SetTransform(onlyIdentity); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if isHopeless(err) {
			end(err)
		}
	}); err != nil {
		return err
	}
	handler := cache.ResourceEventHandlerFuncs{
		// What is there at first may have changed since it was read.
		AddFunc: func(object any) {
			if seen, ok := object.(metav1.Object); ok {
				l.changed(s, seen)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(metav1.Object)
			seen, isToo := after.(metav1.Object)
			if ok && isToo && old.GetResourceVersion() != seen.GetResourceVersion() {
				l.changed(s, old, seen)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if seen, ok := object.(metav1.Object); ok {
				l.changed(s, seen)
			}
		},
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// onlyIdentity keeps of an object what is asked about it.
func onlyIdentity(object any) (any, error) {
	if seen, ok := object.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{TypeMeta: seen.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: seen.Namespace, Name: seen.Name, UID: seen.UID, ResourceVersion: seen.ResourceVersion, Labels: seen.Labels,
		}}, nil
	}
	return object, nil
}

// isHopeless tells whether a watch fails for as long as nobody changes rights or kinds.
func isHopeless(err error) bool {
	return errors.Is(err, ErrTooMany) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
