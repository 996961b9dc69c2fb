package build

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/transport"
)

// identity is what an API server knows an object by, in whatever version it is written.
type identity struct {
	schema.GroupKind

	Namespace, Name string
}

// finish makes objects of what was rendered, and refuses what could not be applied.
func finish(made []rendered, r Request) ([]*unstructured.Unstructured, error) {
	if len(made) == 0 {
		return nil, ErrEmpty
	}
	if len(made) > maxDocuments {
		return nil, fmt.Errorf("%w: more than %d objects", ErrLimit, maxDocuments)
	}
	seen := make(map[identity]string, len(made))
	objects := make([]*unstructured.Unstructured, 0, len(made))
	for _, one := range made {
		object := &unstructured.Unstructured{Object: one.object}
		id, err := identify(object, len(r.Substitute) == 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.origin, err)
		}
		if before, twice := seen[id]; twice {
			return nil, fmt.Errorf("%w: %s is there twice: %s and %s", ErrDocument, describe(id), before, one.origin)
		}
		seen[id] = one.origin
		if len(r.Labels) > 0 {
			object.SetLabels(labels.Merge(object.GetLabels(), r.Labels))
		}
		if len(r.Annotations) > 0 {
			object.SetAnnotations(labels.Merge(object.GetAnnotations(), r.Annotations))
		}
		if err := Normalise(object); err != nil {
			return nil, fmt.Errorf("%s: %w", one.origin, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func describe(id identity) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return transport.Printable(id.String() + " " + name)
}

// identify checks what every object must have. Errors quote what is wrong where no variable is in it: what one stands for may come from a
// Secret.
func identify(object *unstructured.Unstructured, quotes bool) (identity, error) {
	version, err := schema.ParseGroupVersion(text(object.Object, "apiVersion"))
	switch {
	case err != nil || version.Version == "":
		return identity{}, fmt.Errorf("%w: it has no valid apiVersion", ErrDocument)
	case text(object.Object, "kind") == "":
		return identity{}, fmt.Errorf("%w: it has no kind", ErrDocument)
	}
	kind := transport.Printable(object.GetKind())
	metadata, ok := object.Object["metadata"].(map[string]any)
	switch {
	case !ok:
		return identity{}, fmt.Errorf("%w: the %s has no metadata", ErrDocument, kind)
	case metadata["generateName"] != nil:
		return identity{}, fmt.Errorf("%w: the %s has a generateName: each time it would be another object", ErrDocument, kind)
	case text(metadata, "name") == "":
		return identity{}, fmt.Errorf("%w: the %s has no name, or one that is not text", ErrDocument, kind)
	case metadata["namespace"] != nil && text(metadata, "namespace") == "":
		return identity{}, fmt.Errorf("%w: the namespace of the %s is empty or not text", ErrDocument, kind)
	}
	if err := checkPath(version, object, quotes); err != nil {
		return identity{}, err
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkTexts(metadata, field); err != nil {
			return identity{}, fmt.Errorf("%w: in the %s %s %w", ErrDocument, kind, transport.PrintableQuoted(object.GetName()), err)
		}
	}
	return identity{
		GroupKind: schema.GroupKind{Group: version.Group, Kind: object.GetKind()}, Namespace: object.GetNamespace(), Name: object.GetName(),
	}, nil
}

// checkPath sees to it that the object can be asked for: whatever names it stands in a path, and has a length that every
// record of it has room for. How a kind wants its names to be is for the API server to say.
func checkPath(version schema.GroupVersion, object *unstructured.Unstructured, quotes bool) error {
	for _, part := range []struct {
		what, text string
		most       int
	}{
		{"group", version.Group, 253},
		{"version", version.Version, 63},
		{"kind", object.GetKind(), 63},
		{"namespace", object.GetNamespace(), 63},
		{"name", object.GetName(), 253},
	} {
		wrong := content.IsPathSegmentName(part.text)
		if len(part.text) > part.most {
			wrong = []string{fmt.Sprintf("is longer than %d bytes", part.most)}
		}
		if len(wrong) > 0 {
			what := part.what
			if quotes {
				what += " " + transport.PrintableQuoted(part.text)
			}
			return fmt.Errorf("%w: the %s %s", ErrDocument, what, wrong[0])
		}
	}
	return nil
}

func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}

// checkTexts sees to it that labels are read as the texts that they are: what is not text would get lost.
func checkTexts(metadata map[string]any, field string) error {
	if metadata[field] == nil {
		delete(metadata, field)
		return nil
	}
	values, ok := metadata[field].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata.%s is no mapping", field)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := values[name].(string); !ok {
			return fmt.Errorf("metadata.%s has %s, whose value is not text: quote it", field, transport.PrintableQuoted(name))
		}
	}
	return nil
}

// Normalise changes an object into the form in which it can be applied by server-side apply again and again: a Secret's
// stringData becomes data, since the server forgets who set the former, and what only the server may say of an object
// (uid, resourceVersion, generation, the times and the grace period of its life, selfLink, managedFields) is dropped. The
// error is ErrDocument.
func Normalise(object *unstructured.Unstructured) error {
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		for _, field := range []string{
			"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
			"managedFields",
		} {
			delete(metadata, field)
		}
	}
	if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return nil
	}
	given := object.Object["stringData"]
	delete(object.Object, "stringData")
	if given == nil {
		return nil
	}
	texts, ok := given.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: stringData of Secret %s is no mapping", ErrDocument, transport.PrintableQuoted(object.GetName()))
	}
	data, ok := object.Object["data"].(map[string]any)
	if !ok && object.Object["data"] != nil {
		return fmt.Errorf("%w: data of Secret %s is no mapping", ErrDocument, transport.PrintableQuoted(object.GetName()))
	}
	if data == nil {
		data = make(map[string]any, len(texts))
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		value, ok := texts[name].(string)
		if !ok {
			return fmt.Errorf("%w: stringData of Secret %s has %s, whose value is not text: quote it",
				ErrDocument, transport.PrintableQuoted(object.GetName()), transport.PrintableQuoted(name))
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	object.Object["data"] = data
	return nil
}
