package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mirror reads what is asked for once, and follows it from then on: whoever asks again is answered from what it has seen.
type mirror struct {
	client.WithWatch

	there *session
	// life is as long as anything is followed.
	life context.Context
	// news says that something has changed, and ends that it cannot be followed any more.
	news chan struct{}
	ends chan error

	mu     sync.Mutex
	copies map[string]*copied
}

// copied are the objects of one list, as they are now.
type copied struct {
	// read is closed once they were read, or err says why they cannot be.
	read chan struct{}
	err  error

	mu      sync.Mutex
	objects map[client.ObjectKey]unstructured.Unstructured
}

// mirrored is the session as a mirror has it.
func (s *session) mirrored(life context.Context) (*session, *mirror) {
	m := &mirror{WithWatch: s.WithWatch, there: s, life: life, news: make(chan struct{}, 1), ends: make(chan error), copies: map[string]*copied{}}
	seen := *s
	seen.WithWatch = m
	return &seen, m
}

// Get implements client.Reader.
func (m *mirror) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gvk, err := m.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	found, err := m.copyOf(ctx, gvk, false, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	if whole, ok := obj.(*unstructured.Unstructured); ok {
		whole.Object = found[0].Object
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, obj) //nolint:wrapcheck // As a client's own.
}

// List implements client.Reader. What it brings is whole, however little at once is asked for.
func (m *mirror) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := m.GroupVersionKindFor(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Items, err = m.copyOf(ctx, gvk, false, options...)
		return err
	case *metav1.PartialObjectMetadataList:
		found, err := m.copyOf(ctx, gvk, true, options...)
		list.Items = make([]metav1.PartialObjectMetadata, len(found))
		for i := range found {
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, &list.Items[i]))
		}
		return err
	}
	return m.WithWatch.List(ctx, list, options...) //nolint:wrapcheck // As a client's own.
}

// copyOf gives copies of the objects, in the order in which an API server has them, and sees to it that they are followed.
func (m *mirror) copyOf(ctx context.Context, gvk schema.GroupVersionKind, barely bool, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	chosen := (&client.ListOptions{}).ApplyOptions(options)
	chosen.Limit, chosen.Continue = 0, ""
	at := fmt.Sprint(gvk, barely, chosen.Namespace, "/", chosen.LabelSelector, "/", chosen.FieldSelector)
	m.mu.Lock()
	c := m.copies[at]
	if c == nil {
		c = &copied{read: make(chan struct{}), objects: map[client.ObjectKey]unstructured.Unstructured{}}
		m.copies[at] = c
		go m.follow(c, follower{kind: kind{GroupVersionKind: gvk}, barely: barely, options: func() *client.ListOptions { one := *chosen; return &one }})
	}
	m.mu.Unlock()
	select {
	case <-c.read:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.err != nil {
		return nil, c.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(c.objects), func(a, b client.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	found := make([]unstructured.Unstructured, len(keys))
	for i, key := range keys {
		one := c.objects[key]
		found[i] = *one.DeepCopy()
	}
	return found, nil
}

// follow keeps the copies as the objects are. What may not be read is not asked for again.
func (m *mirror) follow(c *copied, f follower) {
	isRead := sync.OnceFunc(func() { close(c.read) })
	f.list = func(found []unstructured.Unstructured) error {
		c.mu.Lock()
		clear(c.objects)
		for i := range found {
			c.objects[client.ObjectKeyFromObject(&found[i])] = found[i]
		}
		c.mu.Unlock()
		isRead()
		m.tell()
		return nil
	}
	f.change = func(obj *unstructured.Unstructured, gone bool) error {
		c.mu.Lock()
		delete(c.objects, client.ObjectKeyFromObject(obj))
		if !gone {
			c.objects[client.ObjectKeyFromObject(obj)] = *obj
		}
		c.mu.Unlock()
		m.tell()
		return nil
	}
	err := m.there.follow(m.life, f)
	select {
	case <-c.read:
		select {
		case m.ends <- err:
		case <-m.life.Done():
		}
		return
	default:
	}
	c.err = err
	isRead()
	if !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
		m.forget(c)
	}
}

// forget has it read anew by whoever asks next.
func (m *mirror) forget(c *copied) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.copies, func(_ string, one *copied) bool { return one == c })
}

func (m *mirror) tell() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}
