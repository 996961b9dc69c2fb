package watch

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestForeignLabelsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	watcher := remembering(t)
	watcher.Limit(1, 0)
	watch := newSubjectWatch(watcher, Subject{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	watch.join("one", "one")
	listed := func(owners int) map[string]*Meta {
		objects := map[string]*Meta{}
		for i := range owners {
			objects[fmt.Sprint(i)] = &Meta{Seen: cluster.Seen{ResourceVersion: "1"}, PartOf: fmt.Sprint("foreign-", i)}
		}
		return objects
	}
	tests := []struct {
		reason        string
		owners        int
		known, asking bool
	}{
		{"whose objects were not kept is not known, so whoever joins asks", 1, false, true},
		{"a list begins anew, and without objects of others there is nothing to ask for", 0, true, false},
		{"many are as one", 1000, false, true},
	}
	for i, test := range tests {
		watch.commit(listed(test.owners), fmt.Sprint(i+1))
		if len(watch.objects) > 0 {
			t.Errorf("%s: %d objects are kept", test.reason, len(watch.objects))
		}
		name := fmt.Sprint("joins-", i)
		watch.join(name, name)
		if _, known := watch.state(name, "a"); known != test.known || (len(watch.again) == 1) != test.asking {
			t.Errorf("%s: known %v, asking %v", test.reason, known, len(watch.again) == 1)
		}
		if test.asking {
			<-watch.again
		}
	}
}
