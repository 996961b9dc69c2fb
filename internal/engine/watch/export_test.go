package watch

import (
	"maps"
	"slices"
)

// Limit bounds the watcher otherwise: how many subjects an owner may have watched, and how many objects of others are kept.
func (w *Watcher) Limit(subjects int, spares int64) { w.subjects, w.spares = subjects, spares }

// Stats count what is held.
type Stats struct {
	// Watches are the open ones, Failing those of them that have a problem.
	Watches, Failing int
	// Objects are remembered in all.
	Objects int
}

// Stats counts what is held now.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	watches := slices.Collect(maps.Values(w.watches))
	w.mu.Unlock()
	stats := Stats{Watches: len(watches)}
	for _, watch := range watches {
		objects, failing := watch.count()
		stats.Objects += objects
		if failing {
			stats.Failing++
		}
	}
	return stats
}

func (s *subjectWatch) count() (objects int, failing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects), s.problem != nil
}
