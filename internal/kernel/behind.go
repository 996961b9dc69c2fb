package kernel

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// longestLag is how long a cache that lacks a write of ours is waited for. A cluster that was restored from a backup never
// shows it.
const longestLag = 30 * time.Second

// mark is the version that our last write gave an object.
type mark struct {
	version string
	made    time.Time
}

func (k *Kernel[O, R]) wrote(obj O) {
	k.marks.Store(client.ObjectKeyFromObject(obj), mark{version: obj.GetResourceVersion(), made: k.Clock.Now()})
}

// behind tells whether the cache has yet to see our last write to the object. Work for what it still shows would be done
// twice, and its report refused.
func (k *Kernel[O, R]) behind(obj O) bool {
	key := client.ObjectKeyFromObject(obj)
	last, _ := k.marks.Load(key)
	m, ok := last.(mark)
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), m.version)
	if err == nil && order < 0 && k.Clock.Since(m.made) < longestLag {
		return true
	}
	k.marks.Delete(key)
	return false
}
