package fetch_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
)

func newClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
}

// turnedAway asks for the artifact, which must not be there, and gives what is said of it and the time to wait.
func turnedAway(t *testing.T, cache *fetch.Cache, a fetch.Artifact) (text string, after time.Duration) {
	t.Helper()
	lease, err := cache.Acquire(t.Context(), a)
	if err == nil {
		lease.Release()
		t.Fatal("the artifact is there")
	}
	f := failure.Of(err)
	if f.Disposition != failure.Waits || f.Reason != fetch.ReasonUnavailable || !errors.Is(err, fetch.ErrUnavailable) {
		t.Fatalf("got reason %s, disposition %d: %v", f.Reason, f.Disposition, err)
	}
	return err.Error(), f.After
}

func TestSourceThatRebuildsIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		first  []http.HandlerFunc
	}{
		"missing":    {"a source that restarts has lost its artifacts for a while", []http.HandlerFunc{answer(404), answer(404), answer(410)}},
		"overloaded": {"503 and 429 say: later", []http.HandlerFunc{answer(503), answer(429), answer(500)}},
		"cut":        {"a connection may break in the middle", []http.HandlerFunc{cutAfter(10)}},
		"hangs up":   {"or before the answer", []http.HandlerFunc{hangUp, hangUp}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing := newClock()
			s := serve(t, pack(t, "a"), test.first...)
			cache := open(t, fetch.Options{Clock: passing})
			for i := range test.first {
				text, after := turnedAway(t, cache, s.artifact())
				for range 3 {
					again, sooner := turnedAway(t, cache, s.artifact())
					if again != text || sooner != after {
						t.Fatalf("%s: after %s in %s came %s in %s", test.reason, text, after, again, sooner)
					}
				}
				if got := s.asked.Load(); got != int64(i+1) {
					t.Fatalf("%s: asked %d times before the delay had passed, want %d", test.reason, got, i+1)
				}
				passing.Step(after)
			}
			lease, err := cache.Acquire(t.Context(), s.artifact())
			check(t, err)
			defer lease.Release()
			if got := content(t, lease); got != "a" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestDelaysGrowToHalfAMinute(t *testing.T) {
	t.Parallel()
	asks := func(code int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(code)
		}
	}
	tests := map[string]struct {
		reason string
		first  []http.HandlerFunc
		want   []int // in seconds
	}{
		"missing": {"each delay is twice the last one", slices.Repeat([]http.HandlerFunc{answer(404)}, 8), []int{1, 2, 4, 8, 16, 30, 30, 30}},
		"asks":    {"a server that asks for time gets it", []http.HandlerFunc{asks(503, "10"), answer(404), answer(404)}, []int{10, 20, 30}},
		"greedy":  {"but not for ever", []http.HandlerFunc{asks(429, "3600"), asks(503, "soon")}, []int{30, 30}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing := newClock()
			s := serve(t, pack(t, "a"), append(test.first, nil, answer(404))...)
			cache := open(t, fetch.Options{Clock: passing, MaxCount: 1})
			for i, want := range test.want {
				if _, after := turnedAway(t, cache, s.artifact()); after != time.Duration(want)*time.Second {
					t.Errorf("%s: delay %d is %s, want %ds", test.reason, i, after, want)
				}
				passing.Step(time.Duration(want) * time.Second)
			}
			lease, err := cache.Acquire(t.Context(), s.artifact())
			check(t, err)
			lease.Release()
			// Another artifact takes its place; with the next failure the delays begin anew.
			other := serve(t, pack(t, "b"))
			lease, err = cache.Acquire(t.Context(), other.artifact())
			check(t, err)
			lease.Release()
			if _, after := turnedAway(t, cache, s.artifact()); after != time.Second {
				t.Errorf("after a success the first delay is %s", after)
			}
		})
	}
}

func TestNewsOfTheSourceIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		news   func(*fetch.Artifact)
	}{
		"stored anew": {"the same bytes under the same url are there again", func(a *fetch.Artifact) { a.Stored = a.Stored.Add(time.Second) }},
		"other url":   {"the source is served elsewhere", func(a *fetch.Artifact) { a.URL += "?elsewhere" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, pack(t, "a"), answer(404))
			cache := open(t, fetch.Options{Clock: newClock()})
			old := s.artifact()
			turnedAway(t, cache, old)
			next := old
			test.news(&next)
			lease, err := cache.Acquire(t.Context(), next)
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			lease.Release()
		})
	}
}

func TestManyConsumersDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := serve(t, pack(t, "a"), slices.Repeat([]http.HandlerFunc{answer(404)}, 300)...)
	cache := open(t, fetch.Options{Clock: newClock()})
	var group sync.WaitGroup
	for range 300 {
		group.Go(func() {
			if _, err := cache.Acquire(t.Context(), s.artifact()); !errors.Is(err, fetch.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if got := s.asked.Load(); got != 1 {
		t.Errorf("300 consumers asked %d times", got)
	}
}

// whileTimePasses moves the clock for as long as somebody acquires.
func whileTimePasses(t *testing.T, passing *clocktesting.FakeClock, cache *fetch.Cache, a fetch.Artifact) error {
	t.Helper()
	got := make(chan error, 1)
	go func() {
		lease, err := cache.Acquire(t.Context(), a)
		if err == nil {
			lease.Release()
		}
		got <- err
	}()
	for {
		select {
		case err := <-got:
			return err
		case <-time.After(time.Millisecond):
			passing.Step(100 * time.Millisecond)
		}
	}
}

func TestSilentServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := serve(t, pack(t, "a"))
	s.first = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		_, _ = w.Write(s.body)
	}}
	passing := newClock()
	cache := open(t, fetch.Options{Clock: passing, Parallel: 1})
	for range 3 {
		err := whileTimePasses(t, passing, cache, s.artifact())
		if !errors.Is(err, fetch.ErrUnavailable) || !strings.Contains(err.Error(), "no answer yet") {
			t.Fatalf("got %v", err)
		}
		if f := failure.Of(err); f.Disposition != failure.Waits || f.After < 2*time.Second || f.After > 30*time.Second {
			t.Errorf("waits for %s, disposition %d", f.After, f.Disposition)
		}
	}
	// It takes no place from those that answer.
	other := serve(t, pack(t, "b"))
	lease, err := cache.Acquire(t.Context(), other.artifact())
	check(t, err)
	lease.Release()

	close(gate)
	lease, err = cache.Acquire(t.Context(), s.artifact())
	check(t, err)
	lease.Release()
	if got := s.asked.Load(); got != 1 {
		t.Errorf("%d downloads", got)
	}
}

func TestLongDownloadGoesOnAlone(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := serve(t, pack(t, "a"))
	s.first = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(s.body[:10])
		_ = http.NewResponseController(w).Flush()
		<-gate
		_, _ = w.Write(s.body[10:])
	}}
	passing := newClock()
	cache := open(t, fetch.Options{Clock: passing})
	for text := ""; !strings.Contains(text, "on its way"); {
		// The silence before the first byte lasts as long as the machine is slow.
		err := whileTimePasses(t, passing, cache, s.artifact())
		if !errors.Is(err, fetch.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		text = err.Error()
	}
	close(gate)
	lease, err := cache.Acquire(t.Context(), s.artifact())
	check(t, err)
	defer lease.Release()
	if got := s.asked.Load(); content(t, lease) != "a" || got != 1 {
		t.Errorf("%d downloads", got)
	}
}
