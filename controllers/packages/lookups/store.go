package lookups

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Object is what is kept of an object that is selected: its name, labels and annotations, and what else may be seen.
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Fields has the 'spec' and 'status' that may be seen.
	Fields map[string]any
	// Err says why it has none of them.
	Err error
}

// DeepCopyObject implements runtime.Object. Nobody changes what is kept.
func (o *Object) DeepCopyObject() runtime.Object {
	copied := *o
	return &copied
}

// says tells whether both say the same.
func (o *Object) says(other *Object) bool {
	return o.UID == other.UID && maps.Equal(o.Labels, other.Labels) && maps.Equal(o.Annotations, other.Annotations) &&
		(o.Err == nil) == (other.Err == nil) && reflect.DeepEqual(o.Fields, other.Fields)
}

// store keeps what is selected, as a Reflector tells of it.
type store struct {
	owners map[types.NamespacedName]struct{}
	stop   context.CancelFunc
	// changed is called after a change, and overflows where there are too many objects.
	changed   func()
	overflows func()
	// again has what failed tried again.
	again chan struct{}

	mu      sync.Mutex
	objects map[types.NamespacedName]*Object
	err     error
	// heard is what has gone wrong so far with what is tried still.
	heard error
	// settled is closed as soon as the objects are there, or an error.
	settled chan struct{}
}

var _ cache.ReflectorStore = (*store)(nil)

// list is what is selected, in the order of names.
func (s *store) list(ctx context.Context) ([]*Object, error) {
	s.mu.Lock()
	if s.err != nil {
		s.err, s.settled = nil, make(chan struct{})
		select {
		case s.again <- struct{}{}:
		default:
		}
	}
	settled := s.settled
	s.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, cmp.Or(s.heard, context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}), nil
}

// settle notes that it is known what there is, and whether somebody was waiting for it. The lock is held.
func (s *store) settle() (wasAwaited bool) {
	select {
	case <-s.settled:
		return false
	default:
		close(s.settled)
		return true
	}
}

// hear notes why there is nothing yet.
func (s *store) hear(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = err
}

// fail notes why there is nothing.
func (s *store) fail(err error) {
	s.mu.Lock()
	s.objects, s.err = nil, err
	wasAwaited := s.settle()
	s.mu.Unlock()
	if !wasAwaited {
		s.changed()
	}
}

// set changes what is kept, and tells of it.
func (s *store) set(key types.NamespacedName, object *Object) {
	s.mu.Lock()
	before, there := s.objects[key]
	if object == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = object
	}
	isSame := there == (object != nil) && (!there || before.says(object))
	overflows := len(s.objects) > MaxTargets
	s.mu.Unlock()
	switch {
	case overflows:
		s.overflows()
	case !isSame:
		s.changed()
	}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	o, ok := object.(*Object)
	if !ok {
		return fmt.Errorf("an object is of type %T", object)
	}
	s.set(keyOf(o), o)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	if o, ok := object.(*Object); ok {
		s.set(keyOf(o), nil)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	made := make(map[types.NamespacedName]*Object, len(objects))
	for _, object := range objects {
		if o, ok := object.(*Object); ok {
			made[keyOf(o)] = o
		}
	}
	s.mu.Lock()
	s.objects, s.err, s.heard = made, nil, nil
	wasAwaited := s.settle()
	s.mu.Unlock()
	if !wasAwaited {
		s.changed()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (*store) Resync() error { return nil }

func keyOf(o *Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}
