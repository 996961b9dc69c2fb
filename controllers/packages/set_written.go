package packages

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// written are the variants of sets as they were changed last, until the cache shows them so: whoever counts how many are changed at
// once has to see all that it has changed itself.
type written struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]map[types.UID]*packagesv1.PackageVariant
}

func newWritten() *written {
	return &written{sets: map[types.NamespacedName]map[types.UID]*packagesv1.PackageVariant{}}
}

func (w *written) note(set types.NamespacedName, v *packagesv1.PackageVariant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets[set] == nil {
		w.sets[set] = map[types.UID]*packagesv1.PackageVariant{}
	}
	w.sets[set][v.UID] = v.DeepCopy()
}

// overlay puts what was written in the place of what is older, and forgets it as soon as it is not.
func (w *written) overlay(set types.NamespacedName, cached []*packagesv1.PackageVariant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ours, still := w.sets[set], map[types.UID]*packagesv1.PackageVariant{}
	for i, v := range cached {
		last := ours[v.UID]
		if last == nil {
			continue
		}
		if order, err := resourceversion.CompareResourceVersion(v.ResourceVersion, last.ResourceVersion); err == nil && order < 0 {
			cached[i], still[v.UID] = last, last
		}
	}
	if w.sets[set] = still; len(still) == 0 {
		delete(w.sets, set)
	}
}

func (w *written) forget(set types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sets, set)
}
