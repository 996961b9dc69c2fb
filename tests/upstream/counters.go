package upstream

import "slices"

// Requests are all requests so far, in the order of their arrival.
func (s *GitHTTP) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.requests))
	for i, request := range s.requests {
		all[i] = *request
	}
	return all
}

// Count is the number of requests of these kinds so far; of all requests without a kind.
func (s *GitHTTP) Count(kinds ...Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, request := range s.requests {
		if len(kinds) == 0 || slices.Contains(kinds, request.Kind) {
			count++
		}
	}
	return count
}

// BytesOut counts the bytes that the server has sent: headers and TLS included.
func (s *GitHTTP) BytesOut() int64 { return s.wire.out.Load() }

// BytesIn counts the bytes that the server has received.
func (s *GitHTTP) BytesIn() int64 { return s.wire.in.Load() }

// Connections counts the connections accepted so far.
func (s *GitHTTP) Connections() int { return int(s.wire.accepted.Load()) }

// Reset forgets the requests so far and sets all counters to zero. Faults stay.
func (s *GitHTTP) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	s.wire.reset()
}
