package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestQueueMergesEqualEvents(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
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
		"other severity": {"Good news is no bad news.", Waiting(subject("a"), "R", boom, ""), false},
		"shifted words":  {"What the reason ends with is not what the message begins with.", Failed(subject("a"), "Rb", errors.New("oom"), ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(10, 1<<20)
			q.put(Failed(subject("a"), "R", boom, ""), noon)
			q.put(Failed(subject("other"), "R", boom, ""), noon)
			if got := q.put(tc.event, noon.Add(time.Minute)).merged; got != tc.merged {
				t.Fatalf("%s merged: want %v, got %v", tc.reason, tc.merged, got)
			}
			first, _ := q.take()
			if first.Object.Name != "a" || first.at.Equal(noon) == tc.merged {
				t.Errorf("a merged event keeps its place and takes the later time: got %s at %s", first.Object.Name, first.at)
			}
			if q.put(Failed(subject("a"), "R", boom, ""), noon).merged && name == "same" {
				t.Error("an event was merged with one already handed out")
			}
		})
	}
}

func TestQueueEndsOnTheLatestNews(t *testing.T) {
	t.Parallel()
	q := newQueue(10, 1<<20)
	boom := errors.New("boom")
	q.put(Failed(subject("a"), "R", boom, ""), noon)
	q.put(Recovered(subject("a"), Artifact{Revision: "r1"}, "fine"), noon)
	q.put(Failed(subject("a"), "R", boom, ""), noon)
	if !q.put(Failed(subject("a"), "R", boom, ""), noon).merged {
		t.Error("the same news twice in a row was not merged")
	}
	q.close()
	var got []string
	for item, ok := q.take(); ok; item, ok = q.take() {
		got = append(got, item.Message)
		q.done(item)
	}
	if diff := cmp.Diff([]string{"boom", "fine", "boom"}, got); diff != "" {
		t.Errorf("an object that fails again is not told to have recovered (-want +got):\n%s", diff)
	}
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	event := func(name string, size int) Event { return warned(subject(name), "R", strings.Repeat("m", size)) }
	q := newQueue(10, 3*(10<<10))
	for _, name := range []string{"a", "b"} {
		if f := q.put(event(name, 9<<10), noon); f != (fate{}) {
			t.Fatalf("the event of %q fits, got %+v", name, f)
		}
	}
	if f := q.put(event("b", 9<<10), noon); f != (fate{merged: true}) || q.length() != 2 {
		t.Errorf("a merged event takes no room, got %+v", f)
	}
	if f := q.put(event("c", 25<<10), noon); f != (fate{dropped: 2, overflow: true}) || q.length() != 1 {
		t.Errorf("the oldest events make room for a large one, each counted: got %+v, %d queued", f, q.length())
	}
	if f := q.put(event("huge", 100<<10), noon); f != (fate{dropped: 1}) || q.length() != 1 {
		t.Errorf("an event is not refused for its size: got %+v, %d queued", f, q.length())
	}
	if item, _ := q.take(); item.Object.Name != "huge" || q.bytes != 0 {
		t.Errorf("an empty queue holds no bytes, got %d", q.bytes)
	}
}

func TestQueueDropsTheOldest(t *testing.T) {
	t.Parallel()
	q := newQueue(2, 1<<20)
	names := []string{"a", "b", "c", "d"}
	var fates []fate
	for _, name := range names {
		fates = append(fates, q.put(warned(subject(name), "R", "m"), noon))
	}
	want := []fate{{}, {}, {dropped: 1, overflow: true}, {dropped: 1}}
	if diff := cmp.Diff(want, fates, cmp.AllowUnexported(fate{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []string{"c", "d"} {
		if item, _ := q.take(); item.Object.Name != want {
			t.Errorf("want the event of %q, got %q", want, item.Object.Name)
		}
	}
	if !q.put(warned(subject("e"), "R", "m"), noon).merged && q.length() != 1 {
		t.Error("an emptied queue takes no events")
	}
}

// TestAFloodDropsNobodyElsesEvents: of many events of one namespace, few others have to be heard.
func TestAFloodDropsNobodyElsesEvents(t *testing.T) {
	t.Parallel()
	in := func(namespace, name string) Event {
		made := warned(subject(name), "R", "m")
		made.Object.Namespace, made.Object.UID = namespace, ""
		return made
	}
	q := newQueue(10, 1<<20)
	q.put(in("team-a", "first"), noon)
	for i := range 100 {
		q.put(in("flood", fmt.Sprint(i)), noon)
	}
	q.put(in("team-a", "last"), noon)
	var got []string
	q.close()
	for item, ok := q.take(); ok; item, ok = q.take() {
		got = append(got, item.Object.Name)
		q.done(item)
	}
	if diff := cmp.Diff([]string{"first", "92", "93", "94", "95", "96", "97", "98", "99", "last"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(q.held) != 0 {
		t.Errorf("an empty queue holds %v", q.held)
	}
}

func TestQueueKeepsOrderWithinAnObject(t *testing.T) {
	t.Parallel()
	q := newQueue(10, 1<<20)
	q.put(warned(subject("a"), "R", "first"), noon)
	q.put(warned(subject("a"), "R", "second"), noon)
	q.put(warned(subject("b"), "R", "other"), noon)

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
	q := newQueue(10, 1<<20)
	q.put(warned(subject("a"), "R", "m"), noon)
	q.close()
	if q.put(warned(subject("b"), "R", "m"), noon).dropped != 1 {
		t.Error("a closed queue took an event")
	}
	if _, ok := q.take(); !ok {
		t.Error("a closed queue kept its event")
	}
	if _, ok := q.take(); ok {
		t.Error("a closed, empty queue handed out an event")
	}
}
