package upstream

// planned is a fault for a number of requests to come.
type planned struct {
	left  int
	fault Fault
}

// SetAccess changes what clients have to show.
func (s *GitHTTP) SetAccess(access Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = access
}

// SetV2 switches protocol v2 on or off.
func (s *GitHTTP) SetV2(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v2 = on
}

// FailNext lets the fault strike the next n requests that it is for, after those planned before.
func (s *GitHTTP) FailNext(n int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, planned{left: n, fault: fault})
}

// Always lets the fault strike every request that it is for and that no planned fault strikes.
func (s *GitHTTP) Always(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = append(s.always, fault)
}

// Heal forgets all faults. Requests that are being struck stay so.
func (s *GitHTTP) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.always = nil, nil
}

// Before runs the function before each request of the kind is passed on to git: a ref that it moves before a
// Fetch has moved between listing and fetching. Nil takes it away.
func (s *GitHTTP) Before(kind Kind, run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before[kind] = run
}

func (s *GitHTTP) fault(kind Kind) Fault {
	for i := range s.next {
		if s.next[i].left > 0 && s.next[i].fault.strikes(kind) {
			s.next[i].left--
			return s.next[i].fault
		}
	}
	for _, fault := range s.always {
		if fault.strikes(kind) {
			return fault
		}
	}
	return Fault{}
}
