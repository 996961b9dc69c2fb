package ui

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

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
