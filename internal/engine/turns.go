package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

const (
	// turnsAtOnce is how many renders fit into the memory for them while it is not known how large they become.
	turnsAtOnce = 5
	// maxQueue is how many rounds of one namespace wait for their turn. More are told at once to come again: whoever
	// waits holds a worker.
	maxQueue = 8
)

// errBusy says that others are being rendered, and that the turn has not come.
var errBusy = errors.New("other releases are being rendered; this one has its turn later")

// busy is the failure of a round whose turn did not come.
func busy() error {
	return failure.At(StageBuild, failure.Wait(modulesv1.ProgressingReason, goOn, errBusy))
}

// turns share the memory that rendered objects take among namespaces. A render begins with a fifth of it, keeps what its
// objects need, and gives that back with the end of the round. One namespace gets half of it at most; those who wait get
// theirs by turns of their namespaces.
type turns struct {
	total, each int64
	patience    time.Duration

	mu     sync.Mutex
	used   int64
	by     map[string]int64
	queues map[string][]*turn
	order  []string // of the namespaces that have a queue
}

// turn is a share of the memory, or the wish for one.
type turn struct {
	turns     *turns
	namespace string
	weight    int64
	// own is what the same round has already: it cannot wait for that.
	own   int64
	ready chan struct{} // closed once it is granted
}

func newTurns(total int64, patience time.Duration) *turns {
	return &turns{
		total: total, each: max(total/turnsAtOnce, 1), patience: patience,
		by: map[string]int64{}, queues: map[string][]*turn{},
	}
}

// ask gives a turn that is granted at once, or waits in the queue of the namespace; nil when that is full.
func (t *turns) ask(namespace string, own int64) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &turn{turns: t, namespace: namespace, weight: t.each, own: own, ready: make(chan struct{})}
	queue := t.queues[namespace]
	switch {
	case len(queue) == 0 && t.fits(one):
		t.grant(one)
	case len(queue) >= maxQueue:
		return nil
	default:
		if len(queue) == 0 {
			t.order = append(t.order, namespace)
		}
		t.queues[namespace] = append(queue, one)
	}
	return one
}

func (t *turns) fits(one *turn) bool {
	return t.used-one.own+one.weight <= t.total && t.by[one.namespace]-one.own+one.weight <= max(t.total/2, t.each)
}

func (t *turns) grant(one *turn) {
	t.used += one.weight
	t.by[one.namespace] += one.weight
	close(one.ready)
}

// next grants what fits, and lets a namespace that got something wait for all others.
func (t *turns) next() {
	for i := 0; i < len(t.order); {
		namespace := t.order[i]
		one := t.queues[namespace][0]
		if !t.fits(one) {
			i++
			continue
		}
		t.grant(one)
		t.leave(one)
		if len(t.queues[namespace]) > 0 {
			t.order = append(slices.Delete(t.order, i, i+1), namespace)
		}
		i = 0
	}
}

// leave takes a turn out of its queue.
func (t *turns) leave(one *turn) {
	queue := slices.DeleteFunc(t.queues[one.namespace], func(other *turn) bool { return other == one })
	if t.queues[one.namespace] = queue; len(queue) == 0 {
		delete(t.queues, one.namespace)
		t.order = slices.DeleteFunc(t.order, func(namespace string) bool { return namespace == one.namespace })
	}
}

// granted says that nothing is to be waited for.
func (one *turn) granted() bool {
	select {
	case <-one.ready:
		return true
	default:
		return false
	}
}

// wait waits for the turn, but not for long: errBusy says that it did not come.
func (one *turn) wait(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, one.turns.patience)
	defer cancel()
	select {
	case <-one.ready:
		return nil
	case <-limited.Done():
	}
	one.turns.mu.Lock()
	defer one.turns.mu.Unlock()
	if one.granted() {
		return nil
	}
	one.turns.leave(one)
	one.turns.next()
	if err := ctx.Err(); err != nil {
		return err
	}
	return busy()
}

// settle makes the share of a granted turn what is needed, which may be nothing.
func (one *turn) settle(weight int64) {
	t := one.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used += weight - one.weight
	if t.by[one.namespace] += weight - one.weight; t.by[one.namespace] == 0 {
		delete(t.by, one.namespace)
	}
	one.weight = weight
	t.next()
}

// weigh estimates what objects take in memory, in bytes.
func weigh(objects []*unstructured.Unstructured) int64 {
	var sum int64
	for _, o := range objects {
		sum += weighValue(o.Object)
	}
	return sum
}

func weighValue(value any) int64 {
	const word = 16 // of an interface, a string or a header of a collection
	sum := int64(word)
	switch v := value.(type) {
	case string:
		sum += int64(len(v))
	case []any:
		for _, item := range v {
			sum += weighValue(item)
		}
	case map[string]any:
		sum += 3 * word
		for name, item := range v {
			sum += 2*word + int64(len(name)) + weighValue(item)
		}
	}
	return sum
}
