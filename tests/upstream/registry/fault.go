package registry

import (
	"net/http"
	"slices"
	"sync"

	"sluice.dev/sluice/tests/upstream"
)

// Fault is what goes wrong with a request. The zero Fault does nothing; the functions of this package make the
// useful ones. A fault strikes every kind of request but Token unless On names some, and it strikes after the
// access check, so that a challenge does not use it up.
type Fault struct {
	kinds []Kind
	only  func(Request) bool
	early bool
	wrap  func(next http.Handler) http.Handler
}

// On limits the fault to requests of these kinds; others pass and do not use it up.
func (f Fault) On(kinds ...Kind) Fault {
	f.kinds = kinds
	return f
}

// When limits the fault to requests that the function chooses; others pass and do not use it up.
func (f Fault) When(chosen func(Request) bool) Fault {
	f.only = chosen
	return f
}

// Early lets the fault strike before the access check.
func (f Fault) Early() Fault {
	f.early = true
	return f
}

// From takes a fault that is the same for every server: upstream.Slow, upstream.Endless and so on.
func From(f upstream.Fault) Fault { return Fault{wrap: f.Handler} }

// Custom is a fault of the caller's own: a handler that may pass the request on.
func Custom(strike func(w http.ResponseWriter, r *http.Request, next http.Handler)) Fault {
	return Fault{wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { strike(w, r, next) })
	}}
}

func (f Fault) strikes(request Request, early bool) bool {
	if f.early != early || f.wrap == nil || f.only != nil && !f.only(request) {
		return false
	}
	if len(f.kinds) == 0 {
		return request.Kind != Token
	}
	return slices.Contains(f.kinds, request.Kind)
}

// planned is a fault for a number of requests to come.
type planned struct {
	left  int
	fault Fault
}

// faults are those of one server.
type faults struct {
	mu     sync.Mutex
	next   []planned
	always []Fault
}

// FailNext lets the fault strike the next n requests that it is for, after those planned before.
func (f *faults) FailNext(n int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, planned{left: n, fault: fault})
}

// Always lets the fault strike every request that it is for. Faults given earlier strike first and may answer alone.
func (f *faults) Always(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always = append(f.always, fault)
}

// Heal forgets all faults. Requests that are being struck stay so.
func (f *faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.always = nil, nil
}

// behind puts the faults that strike the request in front of the handler: one planned, then the lasting ones.
func (f *faults) behind(request Request, early bool, handler http.Handler) http.Handler {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range slices.Backward(f.always) {
		if fault.strikes(request, early) {
			handler = fault.wrap(handler)
		}
	}
	for i := range f.next {
		if f.next[i].left > 0 && f.next[i].fault.strikes(request, early) {
			f.next[i].left--
			return f.next[i].fault.wrap(handler)
		}
	}
	return handler
}
