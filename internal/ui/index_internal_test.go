package ui

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// revocable is somebody who may read all objects until that is taken back, at which the watch ends too.
type revocable struct {
	Lister

	revoked atomic.Bool
	watch   *watch.FakeWatcher
}

func (r *revocable) Objects(context.Context, Kind) (cache.ListerWatcherWithContext, error) {
	if r.revoked.Load() {
		return nil, errors.New("you may not list sources")
	}
	refused := func() error {
		if r.revoked.Load() {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "sources"}, "", nil)
		}
		return nil
	}
	return cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}}
			obj := unstructured.Unstructured{Object: map[string]any{}}
			obj.SetName("a")
			list.Items = append(list.Items, obj)
			return list, refused()
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // It is an older API server.
			}
			return r.watch, refused()
		},
	}), nil
}

// TestWhatMayNotBeReadAnyMoreIsNotShown: nor is it asked for over and over, whether the watch ends or goes on.
func TestWhatMayNotBeReadAnyMoreIsNotShown(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"WatchEnds": true, "WatchGoesOn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			revoking(t, ends)
		})
	}
}

func revoking(t *testing.T, ends bool) {
	t.Helper()
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Kind: "Source"}, Resource: "sources", Page: "sources"}
	x := newIndex([]Kind{kind}, time.Now)
	x.reviewed, x.attends = time.Millisecond, true
	news, leave := x.subscribe(anyKind)
	defer leave()
	r := &revocable{watch: watch.NewFake()}
	go x.run(t.Context(), r)
	until := func(rows int) {
		t.Helper()
		for len(x.all(everything(), func(Kind) bool { return true })) != rows {
			<-news.news
		}
	}
	until(1)
	r.revoked.Store(true)
	if ends {
		r.watch.Stop()
	}
	until(0)
	if told := x.troubles(everything(), func(Kind) bool { return true }); len(told) != 1 || told[0] != "you may not list sources" {
		t.Errorf("troubles: %q", told)
	}
}

// TestOnlyRowsAreKept: also while all objects are read at once.
func TestOnlyRowsAreKept(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	kind := u.index.kinds[0]
	large := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"text": strings.Repeat("x", 1<<20)}}}
	large.SetNamespace("n")
	large.SetName("a")
	store := &rows{index: u.index, kind: kind}
	kept, err := store.Transformer()(large)
	if _, small := kept.(*Row); !small || err != nil {
		t.Fatalf("what is kept is a %T, %v", kept, err)
	}
	if err := store.Replace([]any{kept}, "1"); err != nil || u.index.one(kind, "n", "a") == nil {
		t.Errorf("it is not in the index: %v", err)
	}
}
