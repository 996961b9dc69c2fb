package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watched are targets of one kind and namespace, which one watch follows.
type watched struct {
	kind

	namespace string
	byName    map[string]*target
}

func watchesOf(targets []*target) []*watched {
	var all []*watched
	known := map[string]*watched{}
	for _, t := range targets {
		at := t.resource + "/" + t.namespace
		if known[at] == nil {
			known[at] = &watched{kind: t.kind, namespace: t.namespace, byName: map[string]*target{}}
			all = append(all, known[at])
		}
		known[at].byName[t.name] = t
	}
	return all
}

// run shows each target to see, as it is and whenever it changes, until see has had enough of all of them. One that is not
// there is shown as nil. A watch that ends is begun anew, with growing pauses where nothing is heard between.
func (w *watched) run(ctx context.Context, there *session, see func(*target, *unstructured.Unstructured) bool) error {
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5}
	for first := true; ; first = false {
		version, err := w.list(ctx, there, see)
		if first && err != nil {
			return err
		}
		if err == nil && len(w.byName) > 0 {
			_, err = watchtools.Until(ctx, version, &cache.ListWatch{WatchFuncWithContext: w.open(there)}, func(event watch.Event) (bool, error) {
				return w.take(event, see)
			})
		}
		switch {
		case len(w.byName) == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), meta.IsNoMatchError(err):
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.Step()):
		}
	}
}

// list shows the targets as they are, and says which version of the world that is.
func (w *watched) list(ctx context.Context, there *session, see func(*target, *unstructured.Unstructured) bool) (version string, err error) {
	found := w.objects()
	if err := there.List(ctx, found, w.options()); err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	now := map[string]*unstructured.Unstructured{}
	for i := range found.Items {
		now[found.Items[i].GetName()] = &found.Items[i]
	}
	for name, t := range w.byName {
		if see(t, now[name]) {
			delete(w.byName, name)
		}
	}
	return found.GetResourceVersion(), nil
}

// open begins a watch.
func (w *watched) open(there *session) cache.WatchFuncWithContext {
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		asked := w.options()
		asked.Raw = &options
		return there.Watch(ctx, w.objects(), asked)
	}
}

// take shows the target that an event is about, and says whether see has had enough of all.
func (w *watched) take(event watch.Event, see func(*target, *unstructured.Unstructured) bool) (bool, error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return false, nil
	}
	t := w.byName[obj.GetName()]
	if t == nil {
		return false, nil
	}
	if event.Type == watch.Deleted {
		obj = nil
	}
	if see(t, obj) {
		delete(w.byName, t.name)
	}
	return len(w.byName) == 0, nil
}

func (w *watched) objects() *unstructured.UnstructuredList {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(w.GroupVersion().WithKind(w.Kind + "List"))
	return all
}

// options choose the one target, as somebody may have rights for that alone, or all of the namespace.
func (w *watched) options() *client.ListOptions {
	chosen := &client.ListOptions{Namespace: w.namespace}
	if len(w.byName) == 1 {
		for name := range w.byName {
			chosen.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
		}
	}
	return chosen
}
