package cli

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// origin is an object that another one takes from. Without a namespace it is in that one's.
type origin struct{ kind, namespace, name string }

// refs are the objects that the first of the fields names which is there: as references, or by a name alone, of the kind
// that is given. A list on the way has them all. A path has dots.
func refs(kind string, paths ...string) func(*unstructured.Unstructured) []origin {
	return func(obj *unstructured.Unstructured) []origin {
		for _, path := range paths {
			if found := refsAt(obj.Object, strings.Split(path, "."), kind); len(found) > 0 {
				return found
			}
		}
		return nil
	}
}

func refsAt(value any, path []string, kind string) (found []origin) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			found = append(found, refsAt(one, path, kind)...)
		}
	case map[string]any:
		if len(path) > 0 {
			return refsAt(value[path[0]], path[1:], kind)
		}
		of, _ := value["kind"].(string)
		namespace, _ := value["namespace"].(string)
		if name, _ := value["name"].(string); name != "" {
			return []origin{{cmp.Or(of, kind), namespace, name}}
		}
	case string:
		if len(path) == 0 && value != "" {
			return []origin{{kind: kind, name: value}}
		}
	}
	return found
}

// release is the template that an installation's spec led to.
func release(obj *unstructured.Unstructured) []origin {
	for _, of := range []string{"desired", "current"} {
		name, _, _ := unstructured.NestedString(obj.Object, "status", of, "template")
		namespace, _, _ := unstructured.NestedString(obj.Object, "status", of, "namespace")
		if name != "" {
			return []origin{{modulesv1.ModuleTemplateKind, namespace, name}}
		}
	}
	return nil
}

// road is how objects depend on each other: in the first layer are those that take from no other one.
type road struct {
	there  *session
	known  map[string]*target
	height map[string]int
	layers [][]*target
	// forgives says that what cannot be had is left out, and why is told in lacking.
	forgives bool
	lacking  []error
}

// newRoad is one on which the targets are known.
func newRoad(there *session, targets ...*target) *road {
	r := &road{there: there, known: map[string]*target{}, height: map[string]int{}}
	for _, t := range targets {
		r.known[t.String()] = t
	}
	return r
}

// layered puts before the targets what they take from, and what that takes from.
func layered(ctx context.Context, there *session, targets []*target) ([][]*target, error) {
	r := newRoad(there, targets...)
	for _, t := range targets {
		if _, err := r.visit(ctx, t); err != nil {
			return nil, err
		}
	}
	return r.layers, nil
}

// visit finds the layer of an object. In a circle, whoever is met first comes last.
func (r *road) visit(ctx context.Context, t *target) (int, error) {
	if height, visited := r.height[t.String()]; visited {
		return height, nil
	}
	r.height[t.String()] = 0
	height := 0
	if t.origins != nil {
		for _, o := range t.origins(t.obj) {
			from, err := r.find(ctx, t, o)
			if err != nil && r.forgives {
				r.lacking = append(r.lacking, err)
			} else if err != nil {
				return 0, err
			}
			if from == nil {
				continue
			}
			below, err := r.visit(ctx, from)
			if err != nil {
				return 0, err
			}
			t.from, height = append(t.from, from), max(height, below+1)
		}
	}
	r.height[t.String()] = height
	for len(r.layers) <= height {
		r.layers = append(r.layers, nil)
	}
	r.layers[height] = append(r.layers[height], t)
	return height, nil
}

// find gets an origin; nil where it is of a kind that is not ours.
func (r *road) find(ctx context.Context, t *target, o origin) (*target, error) {
	k, ours := kindOf(o.kind)
	if !ours {
		return nil, nil
	}
	there := r.there.in(cmp.Or(o.namespace, t.obj.GetNamespace()))
	from := newTarget(k, there.namespace, o.name)
	if known := r.known[from.String()]; known != nil {
		return known, nil
	}
	var err error
	if from.obj, err = there.named(ctx, k, o.name); err != nil {
		return nil, err
	}
	from.first = from.obj
	r.known[from.String()] = from
	return from, nil
}
