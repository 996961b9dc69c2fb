package event

import (
	"container/list"
	"maps"
	"strings"
	"sync"
	"time"
)

// queued is an event on its way, with the time it was last told.
type queued struct {
	Event
	at     time.Time
	object string
	size   int // bytes held, about
}

// overhead is about what an event takes in a queue beside its texts, in bytes.
const overhead = 512

func newQueued(e Event, at time.Time) queued {
	size := overhead + len(e.Reason) + len(e.Message)
	for key, value := range e.Metadata {
		size += len(key) + len(value)
	}
	return queued{Event: e, at: at, object: objectOf(e), size: size}
}

func objectOf(e Event) string {
	if e.Object.UID != "" {
		return string(e.Object.UID)
	}
	return strings.Join([]string{e.Object.APIVersion, e.Object.Kind, e.Object.Namespace, e.Object.Name}, "/")
}

// tellsTheSame compares what two events of an object tell. Two revisions can share a commit subject, and a receiver that
// marks commits needs to hear of both.
func (e Event) tellsTheSame(other Event) bool {
	return e.Type == other.Type && e.Trace == other.Trace && e.Reason == other.Reason && e.Message == other.Message &&
		maps.Equal(e.Metadata, other.Metadata)
}

// queue holds events for one reader's workers. It is bounded: the oldest events make room for the newest, which says
// more about how things stand, and those of the namespace that has the most, so that nobody's flood drowns what others have
// to hear. Events of one object are handed out one at a time and in order; those of other objects
// pass an object whose delivery hangs.
type queue struct {
	limit, maxBytes int

	mu     sync.Mutex
	change *sync.Cond
	events *list.List               // of queued, oldest first
	last   map[string]*list.Element // the newest event of each object
	bytes  int
	held   map[string]int      // bytes of the events of each namespace
	busy   map[string]struct{} // objects whose event is being delivered
	closed bool
	full   bool // events were dropped, and the queue has not been half empty since
}

func newQueue(limit, maxBytes int) *queue {
	q := &queue{
		limit:    limit,
		maxBytes: maxBytes,
		events:   list.New(),
		last:     make(map[string]*list.Element),
		held:     make(map[string]int),
		busy:     make(map[string]struct{}),
	}
	q.change = sync.NewCond(&q.mu)
	return q
}

// fate is what became of an event that was put.
type fate struct {
	merged   bool // the same event was the object's last to wait; its time was moved
	dropped  int  // events dropped: this one (queue closed) or the oldest (queue full)
	overflow bool // the first drop since the queue was last half empty
}

func (q *queue) put(e Event, at time.Time) fate {
	item := newQueued(e, at)
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.closed {
		return fate{dropped: 1}
	}
	// An equal event that others followed stays where it is: the reader is to end on how things stand.
	if waiting, ok := q.last[item.object]; ok {
		if before, ok := waiting.Value.(queued); ok && before.tellsTheSame(e) {
			waiting.Value = item
			return fate{merged: true}
		}
	}
	var f fate
	for q.events.Len() > 0 && (q.events.Len() >= q.limit || q.bytes+item.size > q.maxBytes) {
		f.dropped++
		f.overflow = f.overflow || !q.full
		q.full = true
		q.remove(q.dispensable())
	}
	q.last[item.object] = q.events.PushBack(item)
	q.bytes += item.size
	q.held[e.Object.Namespace] += item.size
	q.change.Signal()
	return f
}

// dispensable is the oldest event of the namespace that has the most.
func (q *queue) dispensable() *list.Element {
	most := 0
	for _, size := range q.held {
		most = max(most, size)
	}
	at := q.events.Front()
	for ; at.Next() != nil; at = at.Next() {
		if item, ok := at.Value.(queued); ok && q.held[item.Object.Namespace] == most {
			break
		}
	}
	return at
}

// take waits for an event whose object is not busy. It is false when the queue is closed and has nothing more to give.
// The caller gives the object free with done.
func (q *queue) take() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for {
		for at := q.events.Front(); at != nil; at = at.Next() {
			item, ok := at.Value.(queued)
			if _, held := q.busy[item.object]; !ok || held {
				continue
			}
			q.remove(at)
			q.full = q.full && (q.events.Len() > q.limit/2 || q.bytes > q.maxBytes/2)
			q.busy[item.object] = struct{}{}
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
	delete(q.busy, item.object)
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
	clear(q.last)
	clear(q.held)
	q.bytes = 0
	q.change.Broadcast()
	return lost
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events.Len()
}

func (q *queue) remove(at *list.Element) {
	item, ok := q.events.Remove(at).(queued)
	if !ok {
		return
	}
	q.bytes -= item.size
	if q.held[item.Object.Namespace] -= item.size; q.held[item.Object.Namespace] == 0 {
		delete(q.held, item.Object.Namespace)
	}
	if q.last[item.object] == at {
		delete(q.last, item.object)
	}
}
