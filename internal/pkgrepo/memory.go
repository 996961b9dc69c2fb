package pkgrepo

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice.dev/sluice/internal/kpt"
)

const (
	// maxMemoryBytes bounds what is remembered of Kptfiles and commits for all repositories, beside their snapshots.
	maxMemoryBytes = 32 << 20
	// entryBytes is about what an entry of the memory takes beside the text that it was read from.
	entryBytes = 512
)

// spot is a package's folder in a commit, or, without a path, the commit itself. Without is a digest of the packages in the folder
// that are no part of it, empty if there are none.
type spot struct{ commit, path, without string }

// detail is what is known of a spot for good: a commit does not change.
type detail struct {
	tree string
	note note
	// isOwn says that the commit is of this program, and that everything below it on its draft is as well.
	isOwn bool
	// err says why there is no tree.
	err error
}

// weight is about how many bytes the words of a detail take.
func (d detail) weight(at spot) int64 {
	return int64(len(at.commit) + len(at.path) + len(at.without) + len(d.note.workspace) + len(d.note.revision) + len(d.note.change) +
		len(d.note.variant) + len(d.note.uid) + len(d.note.pristine))
}

// learned are the facts of a tree, or why there are none.
type learned struct {
	facts kpt.Facts
	err   error
	// weight is about half of how many bytes the facts take.
	weight int64
}

// factsIn reads the text of a Kptfile. Of a list or map, two bytes of the text may become a condition.
func factsIn(text []byte) learned {
	facts, err := kpt.ReadFacts(text)
	parts := 32*(len(facts.Conditions)+len(facts.Labels)+len(facts.Annotations)) + 8*len(facts.Gates)
	return learned{facts, err, int64(max(len(text), parts))}
}

// recollection remembers what was read from commits and trees, apart for each repository and identity: nobody is told what is in a
// commit that he only knows the name of. It forgets what was not asked for longest.
type recollection struct {
	mu     sync.Mutex
	max    int64
	weight int64
	items  *simplelru.LRU[any, weighed]
}

type weighed struct {
	value  any
	weight int64
}

// detailKey and factsKey are what the memory knows its items by.
type (
	detailKey struct {
		remote string
		spot
	}
	factsKey struct{ remote, tree string }
)

func newMemory(most int64) *recollection {
	m := &recollection{max: most}
	m.items, _ = simplelru.NewLRU(1<<30, func(_ any, gone weighed) { m.weight -= gone.weight }) // It fails for a size below one alone.
	return m
}

func (m *recollection) put(key, value any, weight int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items.Remove(key)
	if weight += entryBytes; weight > m.max {
		return
	}
	m.items.Add(key, weighed{value, weight})
	for m.weight += weight; m.weight > m.max; {
		m.items.RemoveOldest()
	}
}

func recall[T any](m *recollection, key any) (found T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, ok := m.items.Get(key)
	if ok {
		found, ok = item.value.(T)
	}
	return found, ok
}
