package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asked are turns by their names: the first letter is the namespace.
func asked(t *testing.T, of *turns, names ...string) map[string]*turn {
	t.Helper()
	all := map[string]*turn{}
	for _, name := range names {
		if all[name] = of.ask(name[:1], 0); all[name] == nil {
			t.Fatalf("the queue of %s is full", name)
		}
	}
	return all
}

func grantedOf(all map[string]*turn, names ...string) []string {
	var found []string
	for _, name := range names {
		if all[name].granted() {
			found = append(found, name)
		}
	}
	return found
}

func TestNamespacesHaveTheirTurns(t *testing.T) {
	t.Parallel()
	of := newTurns(500, time.Minute)
	names := []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1", "c2"}
	all := asked(t, of, names...)
	if diff := cmp.Diff([]string{"a1", "a2", "b1", "b2", "c1"}, grantedOf(all, names...)); diff != "" {
		t.Errorf("a namespace has more than half, or less than there is (-want +got):\n%s", diff)
	}
	all["a1"].settle(0)
	if diff := cmp.Diff([]string{"a1", "a2", "a3", "b1", "b2", "c1"}, grantedOf(all, names...)); diff != "" {
		t.Errorf("who asked first of those that fit (-want +got):\n%s", diff)
	}
	all["a2"].settle(0)
	if diff := cmp.Diff([]string{"a1", "a2", "a3", "b1", "b2", "c1", "c2"}, grantedOf(all, names...)); diff != "" {
		t.Errorf("a namespace that has had something comes before one that waits (-want +got):\n%s", diff)
	}
	for _, name := range names {
		all[name].settle(0)
	}
	if of.used != 0 || len(of.by) != 0 || len(of.order) != 0 || len(of.queues) != 0 {
		t.Errorf("something is left: %d, %v, %v", of.used, of.by, of.order)
	}
}

func TestARoundDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	of := newTurns(500, time.Minute)
	large := of.ask("a", 0)
	large.settle(500)
	if other := of.ask("b", 0); other.granted() {
		t.Error("there is no room for another")
	}
	if second := of.ask("a", large.weight); second == nil || !second.granted() {
		t.Error("the second render of the round waits for the first")
	}
}

func TestQueuesEnd(t *testing.T) {
	t.Parallel()
	of := newTurns(1, time.Nanosecond)
	first := of.ask("a", 0)
	waiting := of.ask("a", 0)
	for range maxQueue - 1 {
		of.ask("a", 0)
	}
	if of.ask("a", 0) != nil {
		t.Error("the queue of a namespace has no end")
	}
	if of.ask("b", 0) == nil {
		t.Error("the queue of another is full as well")
	}
	if err := waiting.wait(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("waiting has no end: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if next := of.ask("a", 0); next == nil {
		t.Error("who went away is still in the queue")
	} else if err := next.wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up, and is told %v", err)
	}
	first.settle(0)
	if of.used != 1 {
		t.Errorf("nobody has had the next turn: %d", of.used)
	}
}
