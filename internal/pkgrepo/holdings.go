package pkgrepo

import (
	"fmt"
	"sync"
)

// holdings are the bytes of the snapshots of all repositories, which last as long as the repositories. A tenant has at most half of what
// all others leave, and a repository half of what the others of its tenant leave: so there is always memory left for the next one.
// An eighth is for tenants that take a small part of it.
type holdings struct {
	most int64

	mu    sync.Mutex
	total int64
	by    map[string]int64 // by tenant
	of    map[*Repository]holding
}

type holding struct {
	tenant string
	bytes  int64
}

func newHoldings(most int64) *holdings {
	return &holdings{most: most, by: map[string]int64{}, of: map[*Repository]holding{}}
}

// small is the part of the memory that each tenant has as long as there is any.
const small = 256

// room is how much a repository of the tenant may take now. What it has, it may keep.
func (h *holdings) room(r *Repository, tenant string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left(h.of[r], tenant)
}

// left is called with the lock held.
func (h *holdings) left(before holding, tenant string) int64 {
	own, total := h.by[tenant], h.total-before.bytes
	if before.tenant == tenant {
		own -= before.bytes
	}
	others := total - own
	room := max(((h.most-h.most/8-others)/2-own)/2, h.most/small-own)
	return max(min(room, h.most-total), before.bytes)
}

// take counts a repository's snapshot in the place of the one before. ErrLimit if there is no room for it at all; the one before
// counts on then.
func (h *holdings) take(r *Repository, now holding) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.of[r]
	if room := h.left(before, now.tenant); now.bytes > room {
		return fmt.Errorf("%w: the refs and Kptfiles of all repositories may take %d bytes of memory, and this one needs %d of the %d that are left for it; remove branches and tags, or Repositories",
			ErrLimit, h.most, now.bytes, room)
	}
	h.add(before.tenant, -before.bytes)
	h.add(now.tenant, now.bytes)
	h.of[r] = now
	return nil
}

// release gives back what a repository takes.
func (h *holdings) release(r *Repository) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(h.of[r].tenant, -h.of[r].bytes)
	delete(h.of, r)
}

// add is called with the lock held.
func (h *holdings) add(tenant string, bytes int64) {
	h.total += bytes
	if h.by[tenant] += bytes; h.by[tenant] == 0 {
		delete(h.by, tenant)
	}
}

// What a ref and a package take, about, beside their words.
const (
	perRef     = 250
	perPackage = 1024
	perLeftOut = 24
)

// bytes is about what the snapshot takes.
func (s *Snapshot) bytes() int64 {
	// Kptfiles are kept as what they say, which takes more than their text.
	total := 2*s.known.bytes + int64(len(s.Packages))*perPackage
	total += int64(len(s.leftOut)) * perLeftOut
	for _, path := range s.known.found.beyond {
		total += int64(len(path)) + perLeftOut
	}
	for at, d := range s.known.details { // Anybody may have written the messages.
		total += d.weight(at)
	}
	for name := range s.Refs {
		total += int64(2*len(name)) + perRef
	}
	return total
}

// Forget gives back what the repository takes in memory. Nobody may use it any more.
func (r *Repository) Forget() { r.depot.holdings.release(r) }
