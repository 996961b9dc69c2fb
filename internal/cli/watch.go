package cli

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watched are targets of one kind and namespace, which one watch follows.
type watched struct {
	kind

	namespace string
	byName    map[string]*target
}

func watchesOf(targets []*target) []*watched {
	var all []*watched
	known := map[string]*watched{}
	for _, t := range targets {
		at := t.resource + "/" + t.namespace
		if known[at] == nil {
			known[at] = &watched{kind: t.kind, namespace: t.namespace, byName: map[string]*target{}}
			all = append(all, known[at])
		}
		known[at].byName[t.name] = t
	}
	return all
}

// run shows each target to see, as it is and whenever it changes, until see has had enough of all of them. One that is not
// there is shown as nil.
func (w *watched) run(ctx context.Context, there *session, see func(*target, *unstructured.Unstructured) bool) error {
	show := func(t *target, obj *unstructured.Unstructured) error {
		if t != nil && see(t, obj) {
			delete(w.byName, t.name)
		}
		if len(w.byName) == 0 {
			return errEnough
		}
		return nil
	}
	return there.follow(ctx, follower{
		kind: w.kind, options: w.options,
		list: func(found []unstructured.Unstructured) (err error) {
			now := map[string]*unstructured.Unstructured{}
			for i := range found {
				now[found[i].GetName()] = &found[i]
			}
			for name, t := range w.byName {
				err = show(t, now[name])
			}
			return err
		},
		change: func(obj *unstructured.Unstructured, gone bool) error {
			t := w.byName[obj.GetName()]
			if gone {
				obj = nil
			}
			return show(t, obj)
		},
	})
}

// options choose the one target, as somebody may have rights for that alone, or all of the namespace.
func (w *watched) options() *client.ListOptions {
	chosen := &client.ListOptions{Namespace: w.namespace}
	if len(w.byName) == 1 {
		for name := range w.byName {
			chosen.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
		}
	}
	return chosen
}
