package plan

import (
	"context"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine/cluster"
)

// derived are texts that functions of substitution make of secrets, such as the first letters of one: those that are others where the
// secrets are. It builds once more for that. Where that cannot be done, there are none.
func (d *desk) derived(ctx context.Context, objects []*unstructured.Unstructured) (texts []string) {
	if len(d.secrets) == 0 || len(objects) == 0 {
		return nil
	}
	other := d.in
	other.Variables = maps.Clone(d.in.Variables)
	for name, value := range d.secrets {
		other.Variables[name] = strings.Map(otherThan, value)
	}
	built, err := d.engine.Render(ctx, other)
	if err != nil {
		return nil
	}
	known := map[cluster.Ref]*unstructured.Unstructured{}
	for _, obj := range built.Objects {
		known[refOf(obj)] = obj
	}
	for _, obj := range objects {
		if same := known[refOf(obj)]; same != nil {
			texts = differing(texts, obj.Object, same.Object)
		}
	}
	return texts
}

func refOf(obj *unstructured.Unstructured) cluster.Ref {
	return cluster.Ref{GVK: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// otherThan is another letter or digit, so that what may stand where the one does may stand there too.
func otherThan(r rune) rune {
	next := func(first, size rune) rune { return first + (r-first+size/2)%size }
	switch {
	case r >= 'a' && r <= 'z':
		return next('a', 'z'-'a'+1)
	case r >= 'A' && r <= 'Z':
		return next('A', 'Z'-'A'+1)
	case r >= '0' && r <= '9':
		return next('0', '9'-'0'+1)
	}
	return r
}

// differing adds the texts, and what else has no parts, that another value has otherwise.
func differing(texts []string, value, other any) []string {
	switch value := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		for name, one := range value {
			if same, there := others[name]; there {
				texts = differing(texts, one, same)
			}
		}
	case []any:
		others, _ := other.([]any)
		for i := range min(len(value), len(others)) {
			texts = differing(texts, value[i], others[i])
		}
	default:
		if value != other {
			texts = append(texts, textOf(value))
		}
	}
	return texts
}
