package event

import (
	"container/list"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// queued is an event on its way, with the time it was last told.
type queued struct {
	Event
	at  time.Time
	key identity
}

// identity is what makes two events the same news.
type identity struct {
	object, reason, message, metadata string
	kind                              Type
	trace                             bool
}

// queue holds events for one reader's workers. It is bounded: the oldest event makes room for the newest, which says
// more about how things stand. Events of one object are handed out one at a time and in order; those of other objects
// pass an object whose delivery hangs.
type queue struct {
	limit int

	mu     sync.Mutex
	change *sync.Cond
	events *list.List // of queued, oldest first
	index  map[identity]*list.Element
	busy   map[string]struct{} // objects whose event is being delivered
	closed bool
	full   bool // events were dropped, and the queue has not been half empty since
}

func newQueue(limit int) *queue {
	q := &queue{
		limit:  limit,
		events: list.New(),
		index:  make(map[identity]*list.Element),
		busy:   make(map[string]struct{}),
	}
	q.change = sync.NewCond(&q.mu)
	return q
}

// fate is what became of an event that was put.
type fate struct {
	merged   bool // the same event was waiting already; its time was moved
	dropped  bool // this event (queue closed) or the oldest one (queue full) was dropped
	overflow bool // the first drop since the queue was last half empty
}

func (q *queue) put(e Event, at time.Time) fate {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.closed {
		return fate{dropped: true}
	}
	item := queued{Event: e, at: at, key: identify(e)}
	if waiting, ok := q.index[item.key]; ok {
		waiting.Value = item
		return fate{merged: true}
	}
	var f fate
	if q.events.Len() >= q.limit {
		f = fate{dropped: true, overflow: !q.full}
		q.full = true
		q.remove(q.events.Front())
	}
	q.index[item.key] = q.events.PushBack(item)
	q.change.Signal()
	return f
}

// take waits for an event whose object is not busy. It is false when the queue is closed and has nothing more to give.
// The caller gives the object free with done.
func (q *queue) take() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for {
		for at := q.events.Front(); at != nil; at = at.Next() {
			item, ok := at.Value.(queued)
			if _, held := q.busy[item.key.object]; !ok || held {
				continue
			}
			q.remove(at)
			q.full = q.full && q.events.Len() > q.limit/2
			q.busy[item.key.object] = struct{}{}
			return item, true
		}
		if q.closed && q.events.Len() == 0 {
			return queued{}, false
		}
		q.change.Wait()
	}
}

func (q *queue) done(item queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, item.key.object)
	q.change.Broadcast()
}

// close refuses further events; those that wait are still handed out.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

// discard gives up what still waits and says how much that was.
func (q *queue) discard() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost := q.events.Len()
	q.events.Init()
	clear(q.index)
	q.change.Broadcast()
	return lost
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events.Len()
}

func (q *queue) remove(at *list.Element) {
	if item, ok := q.events.Remove(at).(queued); ok {
		delete(q.index, item.key)
	}
}

func identify(e Event) identity {
	object := string(e.Object.UID)
	if object == "" {
		object = strings.Join([]string{e.Object.APIVersion, e.Object.Kind, e.Object.Namespace, e.Object.Name}, "/")
	}
	// Two revisions can share a commit subject, and a receiver that marks commits needs to hear of both.
	var metadata strings.Builder
	for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
		metadata.WriteString(strconv.Quote(key) + strconv.Quote(e.Metadata[key]))
	}
	return identity{
		object: object, reason: e.Reason, message: e.Message, metadata: metadata.String(),
		kind: e.Type, trace: e.Trace,
	}
}
