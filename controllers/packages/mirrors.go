package packages

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// mirrors are what is known of repositories.
type mirrors struct {
	mu  sync.RWMutex
	all map[types.NamespacedName]*mirror
}

// mirror is a repository as its object says how to reach it.
type mirror struct {
	*pkgrepo.Repository

	key types.NamespacedName
	// url is where it is, without credentials, as packages name their upstream.
	url string
	// branch is the one that has what is published, and directory is where its packages are.
	branch, directory string
	// isDeployment says that what is published is deployed from here.
	isDeployment bool
	// trust says which signatures its commits must have; nil for none.
	trust *trust
}

func newMirrors() *mirrors { return &mirrors{all: map[types.NamespacedName]*mirror{}} }

// get returns the repository; nil as long as nobody has looked at it.
func (m *mirrors) get(key types.NamespacedName) *mirror {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.all[key]
}

// of are the Repositories that have a Git repository.
func (m *mirrors) of(url string) (found []*mirror) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, mirror := range m.all {
		if variant.SameRepository(mirror.url, url) {
			found = append(found, mirror)
		}
	}
	return found
}

// put takes in a repository, in the place of what was known of it.
func (m *mirrors) put(made *mirror) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.all[made.key]; before != nil && before.Repository != made.Repository {
		before.Forget()
	}
	m.all[made.key] = made
}

// forget drops what is known of a repository.
func (m *mirrors) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.all[key]; before != nil {
		before.Forget()
	}
	delete(m.all, key)
}

// snapshots are what is known of all repositories.
func (m *mirrors) snapshots() []*pkgrepo.Snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []*pkgrepo.Snapshot
	for _, one := range m.all {
		if s := one.Snapshot(); s != nil {
			all = append(all, s)
		}
	}
	return all
}
