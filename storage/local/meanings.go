package local

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice.dev/sluice/storage"
)

// maxMeaningBytes bounds the memory of the meanings, which is no part of any budget: it is small beside the smallest
// container that the program is for. Some 10,000 records of the usual length fit; a forgotten one is merely read again.
const maxMeaningBytes = 16 << 20

// What the parts of a meaning take beside their texts, at least: Go's maps leave up to half their room empty.
const (
	meaningBytes  = 512
	artifactBytes = 192
	entryBytes    = 96
)

// meanings are those that were used last, by the path of the record: an object's names may be part of a request's long text.
type meanings struct {
	mu    sync.Mutex
	kept  *simplelru.LRU[string, meaning]
	bytes int
}

func newMeanings() *meanings {
	m := &meanings{}
	m.kept, _ = simplelru.NewLRU(math.MaxInt, func(path string, gone meaning) { m.bytes -= gone.weigh(path) }) // It fails for a size below one alone.
	return m
}

func (m *meanings) get(path string) (meaning, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Get(path)
}

func (m *meanings) add(path string, known meaning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.Remove(path)
	m.bytes += known.weigh(path)
	m.kept.Add(path, known)
	for m.bytes > maxMeaningBytes {
		m.kept.RemoveOldest()
	}
}

func (m *meanings) remove(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.Remove(path)
}

func (m *meanings) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Len()
}

// weigh is how many bytes of memory the meaning takes, rather too many.
func (m meaning) weigh(path string) int {
	bytes := meaningBytes + len(path)
	for _, artifact := range m.artifacts {
		bytes += weighArtifact(artifact)
	}
	if m.record == nil {
		return bytes
	}
	r := m.record
	bytes += len(r.UID) + len(r.ConfigChecksum) + len(r.BaseChecksum) + len(r.ContentKey) + len(r.VerifiedBy) + len(r.Proof) + len(r.Title)
	for _, artifact := range artifacts(*r) {
		bytes += weighArtifact(artifact)
	}
	return bytes
}

func weighArtifact(a storage.Artifact) int {
	bytes := artifactBytes + len(a.Path) + len(a.Digest) + len(a.Revision)
	for key, value := range a.Metadata {
		bytes += entryBytes + len(key) + len(value)
	}
	return bytes
}
