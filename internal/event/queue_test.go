package event

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestQueueMergesEqualEvents(t *testing.T) {
	t.Parallel()
	q := newQueue(10)
	boom := errors.New("boom")

	q.put(Failed(subject("a"), "R", boom, ""), noon)
	for name, tc := range map[string]struct {
		reason string
		event  Event
		merged bool
	}{
		"same":           {"The same news is told once.", Failed(subject("a"), "R", boom, ""), true},
		"other object":   {"Another object's trouble is other news.", Failed(subject("b"), "R", boom, ""), false},
		"other reason":   {"Another reason is other news.", Failed(subject("a"), "S", boom, ""), false},
		"other message":  {"Another message is other news.", Failed(subject("a"), "R", errors.New("bang"), ""), false},
		"other revision": {"The same words about another revision are other news.", Failed(subject("a"), "R", boom, "r2"), false},
	} {
		if got := q.put(tc.event, noon.Add(time.Minute)).merged; got != tc.merged {
			t.Errorf("%s: %s merged: want %v, got %v", name, tc.reason, tc.merged, got)
		}
	}
	if got := q.length(); got != 5 {
		t.Errorf("queued: want 5, got %d", got)
	}
	if item, _ := q.take(); item.at != noon.Add(time.Minute) {
		t.Errorf("a merged event keeps its place and takes the later time: got %s", item.at)
	}
	if q.put(Failed(subject("a"), "R", boom, ""), noon).merged {
		t.Error("an event was merged with one already handed out")
	}
}

func TestQueueDropsTheOldest(t *testing.T) {
	t.Parallel()
	q := newQueue(2)
	names := []string{"a", "b", "c", "d"}
	var fates []fate
	for _, name := range names {
		fates = append(fates, q.put(Warned(subject(name), "R", "m"), noon))
	}
	want := []fate{{}, {}, {dropped: true, overflow: true}, {dropped: true}}
	if diff := cmp.Diff(want, fates, cmp.AllowUnexported(fate{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []string{"c", "d"} {
		if item, _ := q.take(); item.Object.Name != want {
			t.Errorf("want the event of %q, got %q", want, item.Object.Name)
		}
	}
	if !q.put(Warned(subject("e"), "R", "m"), noon).merged && q.length() != 1 {
		t.Error("an emptied queue takes no events")
	}
}

func TestQueueKeepsOrderWithinAnObject(t *testing.T) {
	t.Parallel()
	q := newQueue(10)
	q.put(Warned(subject("a"), "R", "first"), noon)
	q.put(Warned(subject("a"), "R", "second"), noon)
	q.put(Warned(subject("b"), "R", "other"), noon)

	first, _ := q.take()
	other, _ := q.take()
	q.done(first)
	second, _ := q.take()
	got := []string{first.Message, other.Message, second.Message}
	if diff := cmp.Diff([]string{"first", "other", "second"}, got); diff != "" {
		t.Errorf("while an object's event is under way, its next one waits and others pass (-want +got):\n%s", diff)
	}
}

func TestClosedQueueHandsOutWhatItHolds(t *testing.T) {
	t.Parallel()
	q := newQueue(10)
	q.put(Warned(subject("a"), "R", "m"), noon)
	q.close()
	if !q.put(Warned(subject("b"), "R", "m"), noon).dropped {
		t.Error("a closed queue took an event")
	}
	if _, ok := q.take(); !ok {
		t.Error("a closed queue kept its event")
	}
	if _, ok := q.take(); ok {
		t.Error("a closed, empty queue handed out an event")
	}
}
