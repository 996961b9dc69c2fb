package local

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// names knows which bodies the records of objects name, so that a body goes with the last of them. Only a process that
// writes needs it. What it is told about an object is told under the object's lock.
type names struct {
	mu      sync.Mutex
	of      map[storage.Object][]digest.Digest
	records map[digest.Digest]int
}

// set replaces what an object names, and returns what it has named.
func (n *names) set(object storage.Object, digests []digest.Digest) (before []digest.Digest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of, n.records = make(map[storage.Object][]digest.Digest), make(map[digest.Digest]int)
	}
	for _, d := range digests {
		n.records[d]++
	}
	before = n.of[object]
	for _, d := range before {
		if n.records[d]--; n.records[d] == 0 {
			delete(n.records, d)
		}
	}
	if n.of[object] = digests; len(digests) == 0 {
		delete(n.of, object)
	}
	return before
}

func (n *names) has(d digest.Digest) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.records[d] > 0
}

// and adds the objects that name anything to the list.
func (n *names) and(objects []storage.Object) []storage.Object {
	n.mu.Lock()
	defer n.mu.Unlock()
	return inOrder(slices.AppendSeq(objects, maps.Keys(n.of)))
}

// count learns what the object's record names now. The object's lock is held.
func (s *Store) count(object storage.Object) error {
	record, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	s.names.set(object, digests(record))
	return nil
}

// digests lists the bodies that the record names.
func digests(record storage.Record) []digest.Digest {
	var all []digest.Digest
	for _, artifact := range artifacts(record) {
		all = append(all, artifact.Digest)
	}
	return all
}
