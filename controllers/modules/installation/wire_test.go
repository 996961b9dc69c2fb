package installation_test

import (
	"net/http"
	"sync"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/event"
)

// eventLog keeps events.
type eventLog struct {
	mu     sync.Mutex
	events []event.Event
}

func (e *eventLog) Emit(ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ev.Object.Kind == modulesv1.ModuleInstallationKind {
		e.events = append(e.events, ev)
	}
}

// of are the messages of the events with the reason.
func (e *eventLog) of(reason string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var messages []string
	for _, ev := range e.events {
		if ev.Reason == reason {
			messages = append(messages, ev.Message)
		}
	}
	return messages
}

// types are the types of the events with the reason.
func (e *eventLog) types(reason string) []event.Type {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []event.Type
	for _, ev := range e.events {
		if ev.Reason == reason {
			types = append(types, ev.Type)
		}
	}
	return types
}

// wire sees every request that the controllers make.
type wire struct {
	mu       sync.Mutex
	requests []request
}

type request struct {
	as, verb, path string
	// refused says that what it asked for was not done, as when another write came first.
	refused bool
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		at := len(w.requests)
		w.requests = append(w.requests, request{as: r.Header.Get("Impersonate-User"), verb: r.Method, path: r.URL.Path})
		w.mu.Unlock()
		answer, err := next.RoundTrip(r)
		w.mu.Lock()
		w.requests[at].refused = err != nil || answer.StatusCode >= http.StatusBadRequest
		w.mu.Unlock()
		return answer, err
	})
}

// matching are the requests so far that the function takes.
func (w *wire) matching(take func(request) bool) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []request
	for _, r := range w.requests {
		if take(r) {
			found = append(found, r)
		}
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
