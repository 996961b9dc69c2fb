package ui

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	"sluice.dev/sluice/internal/view"
)

// Row is what tables show of an object. It is all that is kept of it.
type Row struct {
	view.Fact

	Kind            Kind
	Namespace, Name string
	UID             types.UID
	Cells           []string
	// version tells whether the object is the one that was shown.
	version string
	// has is the module that an installation has a release of, and counted what modules' pages count of it, in short.
	has     string
	counted uint64
	// text is all that is searched, in small letters.
	text string
}

const (
	// maxKept is how much is kept of a message, and maxCell of a cell.
	maxKept, maxCell = 1024, 256
)

// newRow keeps what is shown of an object.
func newRow(kind Kind, obj *unstructured.Unstructured) *Row {
	row := &Row{Fact: view.Of(obj), Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), version: obj.GetResourceVersion()}
	row.Message = printable.Line(row.Message, maxKept)
	row.Reason = printable.Line(row.Reason, maxCell)
	for _, c := range kind.Columns {
		row.Cells = append(row.Cells, printable.Line(c.Value(obj), maxCell))
	}
	row.text = row.searched()
	if kind.Kind == installationKind {
		row.has, row.counted = countedOf(obj)
	}
	return row
}

// anchor is the id of the row on a page.
func (r *Row) anchor() string { return "r-" + string(r.UID) }

// heard is how the objects of a kind are known.
type heard struct {
	rows map[types.NamespacedName]*Row
	// listed says that all were read once.
	listed bool
	// broken is since when nothing is heard of them, and why.
	broken time.Time
	why    string
	// lacking is what is missing of them.
	lacking string
}

// index has a row for each object. Whoever subscribes is told that kinds have changed.
type index struct {
	now   func() time.Time
	kinds []Kind
	// reviewed is the constant, but for tests.
	reviewed time.Duration
	// attends says that it is one person's: what they may not read any more goes at once, whatever is watched.
	attends bool

	mu          sync.RWMutex
	heard       map[string]*heard
	subscribers map[*subscriber]bool
	// changes is how often something has changed.
	changes uint64

	remembered memory
}

// memory is what was found in the index as it is: many look at the same page, and each would look through all rows.
type memory struct {
	mu      sync.Mutex
	changes uint64
	found   map[looked]shown
	summary map[string]summary
}

// looked is a look at a table, by somebody whose scope has the mark.
type looked struct {
	query

	mark string
}

// maxRemembered is how many tables are remembered, and how many overviews.
const maxRemembered = 64

// remember calls with what is known of the index as it is now.
func (x *index) remember(do func(*memory)) {
	x.mu.RLock()
	changes := x.changes
	x.mu.RUnlock()
	known := &x.remembered
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.changes != changes || len(known.found) >= maxRemembered || len(known.summary) >= maxRemembered || known.found == nil {
		known.changes, known.found, known.summary = changes, map[looked]shown{}, map[string]summary{}
	}
	do(known)
}

// subscriber is somebody who looks at some kinds. News is full when there are any.
type subscriber struct {
	wanted func(Kind) bool
	news   chan struct{}
}

func newIndex(kinds []Kind, now func() time.Time) *index {
	made := &index{now: now, kinds: kinds, reviewed: reviewed, heard: map[string]*heard{}, subscribers: map[*subscriber]bool{}}
	for _, kind := range kinds {
		made.heard[kind.Resource] = &heard{rows: map[types.NamespacedName]*Row{}}
	}
	return made
}

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

// change changes what is known of a kind, and tells those who look at it.
func (x *index) change(kind Kind, do func(*heard)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do(x.heard[kind.Resource])
	x.changes++
	for s := range x.subscribers {
		if s.wanted(kind) {
			offer(s.news)
		}
	}
}

// offer says that there are news, if nobody has said so already.
func offer(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// subscribe tells of changes of the kinds until the function is called.
func (x *index) subscribe(wanted func(Kind) bool) (*subscriber, func()) {
	made := &subscriber{wanted: wanted, news: make(chan struct{}, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.subscribers[made] = true
	return made, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.subscribers, made)
	}
}

// all gives the rows of the kinds that are in the scope, in no order.
func (x *index) all(may *scope, wanted func(Kind) bool) []*Row {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*Row
	for _, kind := range x.kindsFor(wanted) {
		for _, row := range x.heard[kind.Resource].rows {
			if may.sees(kind, row.Namespace) {
				found = append(found, row)
			}
		}
	}
	return found
}

// kindsFor are the kinds that are wanted.
func (x *index) kindsFor(wanted func(Kind) bool) []Kind {
	return slices.DeleteFunc(slices.Clone(x.kinds), func(k Kind) bool { return !wanted(k) })
}

// namespaces are those that have objects of the kinds, by name.
func (x *index) namespaces(kinds []Kind) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]bool{}
	for _, kind := range kinds {
		for at := range x.heard[kind.Resource].rows {
			found[at.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// one is the row of an object; nil for none.
func (x *index) one(kind Kind, namespace, name string) *Row {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.heard[kind.Resource].rows[types.NamespacedName{Namespace: namespace, Name: name}]
}

// troubles are what people have to know of how the objects of the kinds are known, and of their own scope.
func (x *index) troubles(may *scope, wanted func(Kind) bool) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	told := slices.Clone(may.lacking)
	for _, kind := range x.kindsFor(wanted) {
		h := x.heard[kind.Resource]
		if h.lacking != "" {
			told = append(told, h.lacking)
		}
		switch {
		case !h.broken.IsZero():
			told = append(told, fmt.Sprintf("%s: nothing was heard for %s: %s", kind.Resource, x.now().Sub(h.broken).Round(time.Second), h.why))
		case !h.listed:
			told = append(told, kind.Resource+": they are being read")
		}
	}
	return told
}

// unheard is what people have to know of how an object is known. Of others of its kind that may not be read it is nothing.
func (x *index) unheard(kind Kind, namespace, name string) []string {
	told := x.troubles(everything(), kind.is)
	if x.one(kind, namespace, name) == nil {
		return told
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.DeleteFunc(told, func(text string) bool { return text == x.heard[kind.Resource].lacking })
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
