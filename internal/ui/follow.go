package ui

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/printable"
)

// run keeps the index until the context ends.
func (x *index) run(ctx context.Context, lister Lister) {
	var all sync.WaitGroup
	for _, kind := range x.kinds {
		all.Go(func() { x.follow(ctx, lister, kind) })
	}
	all.Wait()
}

// reviewed is how often it is asked anew which objects may be read of a kind of which some may not.
const reviewed = 30 * time.Second

// follow keeps the rows of a kind.
func (x *index) follow(ctx context.Context, lister Lister, kind Kind) {
	for ctx.Err() == nil {
		again, stop := context.WithTimeout(ctx, x.reviewed)
		x.review(ctx, again, lister, kind)
		<-again.Done()
		stop()
	}
}

// review asks which objects may be read, and reads them: for as long as all of them may be, else until it is to be asked again. What may
// not be read any more is shown no more.
func (x *index) review(ctx, again context.Context, lister Lister, kind Kind) {
	objects, lacking := lister.Objects(ctx, kind)
	x.change(kind, func(h *heard) {
		h.lacking = ""
		if lacking != nil {
			h.lacking, h.listed, h.broken = lacking.Error(), true, time.Time{}
		}
		if objects == nil {
			h.rows = map[types.NamespacedName]*Row{}
		}
	})
	if objects == nil {
		return
	}
	if lacking != nil {
		ctx = again
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if x.attends {
		go x.attend(ctx, stop, lister, kind)
	}
	cache.NewReflectorWithOptions(x.attentive(kind, objects, stop), &unstructured.Unstructured{}, &rows{index: x, kind: kind}, cache.ReflectorOptions{
		Name: kind.Resource, TypeDescription: kind.Kind,
	}).RunWithContext(ctx)
}

// attend stops what follows objects of which some may not be read any more: the API server goes on with a watch for minutes
// after its right is gone.
func (x *index) attend(ctx context.Context, stop func(), lister Lister, kind Kind) {
	defer stop()
	_ = wait.PollUntilContextCancel(ctx, x.reviewed, false, func(ctx context.Context) (bool, error) {
		_, lacking := lister.Objects(ctx, kind)
		return lacking != nil, nil
	})
}

// rows takes what a reflector reads of a kind.
type rows struct {
	index *index
	kind  Kind
}

// Transformer implements cache.TransformingStore: while all objects are read, no more of one is kept than its row, as whoever may make
// objects may make many large ones.
func (r *rows) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if _, row := r.row(obj); row != nil {
			return row, nil
		}
		return obj, nil
	}
}

func (r *rows) row(obj any) (types.NamespacedName, *Row) {
	var row *Row
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		row = newRow(r.kind, obj)
	case *Row:
		row = obj
	default:
		return types.NamespacedName{}, nil
	}
	return types.NamespacedName{Namespace: row.Namespace, Name: row.Name}, row
}

// Add implements cache.ReflectorStore, as the others do.
func (r *rows) Add(obj any) error {
	if at, row := r.row(obj); row != nil {
		r.index.change(r.kind, func(h *heard) { h.rows[at] = row })
	}
	return nil
}

// Update is Add.
func (r *rows) Update(obj any) error { return r.Add(obj) }

// Delete takes a row away.
func (r *rows) Delete(obj any) error {
	at, _ := r.row(obj)
	r.index.change(r.kind, func(h *heard) { delete(h.rows, at) })
	return nil
}

// Replace takes all rows.
func (r *rows) Replace(objects []any, _ string) error {
	made := make(map[types.NamespacedName]*Row, len(objects))
	for _, obj := range objects {
		if at, row := r.row(obj); row != nil {
			made[at] = row
		}
	}
	r.index.change(r.kind, func(h *heard) { h.rows, h.listed = made, true })
	return nil
}

// Resync has nothing to do.
func (r *rows) Resync() error { return nil }

// attentive notes when nothing can be heard of a kind, and when something is heard again. It stops where they may not be
// listed any more; whoever may not watch them has them listed.
func (x *index) attentive(kind Kind, objects cache.ListerWatcherWithContext, stop func()) cache.ListerWatcher {
	note := func(err error) {
		x.mu.RLock()
		broken := !x.heard[kind.Resource].broken.IsZero()
		x.mu.RUnlock()
		if err == nil && !broken {
			return
		}
		x.change(kind, func(h *heard) {
			switch {
			case err == nil:
				h.broken, h.why = time.Time{}, ""
			case h.broken.IsZero():
				h.broken, h.why = x.now(), printable.Line(err.Error(), maxCell)
			}
		})
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.ListWithContext(ctx, options)
			if apierrors.IsForbidden(err) {
				stop()
			}
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			made, err := objects.WatchWithContext(ctx, options)
			note(err)
			return made, err
		},
	}
}
