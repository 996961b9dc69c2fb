package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Field is a field that would change, with its values as JSON; one that is not there has none.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Hidden says that the values are secret.
	Hidden bool `json:"hidden,omitempty"`
}

// pathOf is a path as the API server writes it in conflicts, in the form of Field.Path.
func pathOf(conflict string) string {
	return strings.ReplaceAll(strings.TrimPrefix(conflict, "."), `"`, "")
}

// maxFields is how many changed fields of an object are told.
const maxFields = 2000

// lists says of lists, by their paths with nothing in the brackets of lists above, by which fields their items are told apart. It is
// what the API server has noted of who owns items: it goes by the schema of the kind.
type lists map[string][]string

func listsOf(objects ...*unstructured.Unstructured) lists {
	known := lists{}
	for _, obj := range objects {
		for _, entry := range obj.GetManagedFields() {
			set := &fieldpath.Set{}
			if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
				continue
			}
			set.Iterate(known.learn)
		}
	}
	return known
}

func (l lists) learn(path fieldpath.Path) {
	var at strings.Builder
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			at.WriteString("." + *element.FieldName)
		case element.Key != nil:
			if _, known := l[at.String()]; !known {
				var names []string
				for _, field := range *element.Key {
					names = append(names, field.Name)
				}
				l[at.String()] = names
			}
			at.WriteString("[]")
		default:
			at.WriteString("[]")
		}
	}
}

// comparison finds the fields in which two objects differ.
type comparison struct {
	lists
	hidden *mask
	found  []Field
}

// compare tells what is different after a change. Where a value is hidden, so is the other one in the objects: it was secret before,
// or is from now on.
func (m *mask) compare(before, after *unstructured.Unstructured, known lists) []Field {
	c := &comparison{lists: known, hidden: m}
	c.maps("", "", before.Object, after.Object)
	return c.found
}

// shown is an object without its status, and without what every write changes.
func shown(obj *unstructured.Unstructured) *unstructured.Unstructured {
	kept := maps.Clone(obj.Object)
	delete(kept, "status")
	metadata, _ := kept["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		delete(metadata, name)
	}
	kept["metadata"] = metadata
	return &unstructured.Unstructured{Object: kept}
}

func (c *comparison) maps(path, at string, before, after map[string]any) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		step := name
		if strings.ContainsAny(name, ".[]/") {
			step = "[" + name + "]"
		} else if path != "" {
			step = "." + name
		}
		was, had := before[name]
		is, has := after[name]
		if !c.values(path+step, at+"."+name, was, is, had, has) {
			continue
		}
		if had {
			before[name] = c.hidden.marked(was)
		}
		if has {
			after[name] = c.hidden.marked(is)
		}
	}
}

// values says whether the values are to be hidden.
func (c *comparison) values(path, at string, was, is any, had, has bool) (hidden bool) {
	if had && has && reflect.DeepEqual(was, is) {
		return false
	}
	wasMap, wasIsMap := was.(map[string]any)
	isMap, isIsMap := is.(map[string]any)
	wasList, wasIsList := was.([]any)
	isList, isIsList := is.([]any)
	switch keys := c.lists[at]; {
	case (wasIsMap || !had) && (isIsMap || !has):
		c.maps(path, at, wasMap, isMap)
		if len(wasMap)+len(isMap) == 0 {
			return c.tell(path, was, is, had, has)
		}
		return false
	case len(keys) > 0 && (wasIsList || !had) && (isIsList || !has):
		return c.items(path, at, keys, wasList, isList)
	}
	return c.tell(path, was, is, had, has)
}

// items compares items that their keys tell apart, in the order in which they are after the change, then those that go.
func (c *comparison) items(path, at string, keys []string, before, after []any) (hidden bool) {
	name := func(item any) string {
		fields, _ := item.(map[string]any)
		var parts []string
		for _, key := range keys {
			if value, found := fields[key]; found {
				parts = append(parts, fmt.Sprintf("%s=%v", key, value))
			}
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	find := func(in []any, wanted string) (any, bool) {
		at := slices.IndexFunc(in, func(item any) bool { return name(item) == wanted })
		if at < 0 {
			return nil, false
		}
		return in[at], true
	}
	for _, item := range after {
		was, had := find(before, name(item))
		hidden = c.values(path+name(item), at+"[]", was, item, had, true) || hidden
	}
	for _, item := range before {
		if _, has := find(after, name(item)); !has {
			hidden = c.values(path+name(item), at+"[]", item, nil, true, false) || hidden
		}
	}
	return hidden
}

func (c *comparison) tell(path string, was, is any, had, has bool) (hidden bool) {
	told := Field{Path: path, Hidden: holdsMark(was) || holdsMark(is)}
	if !told.Hidden {
		told.Before, told.After = text(was, had), text(is, has)
	}
	if len(c.found) < maxFields {
		c.found = append(c.found, told)
	}
	return told.Hidden
}

// holdsMark says that something within the value is hidden.
func holdsMark(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, one := range value {
			if holdsMark(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, holdsMark)
	}
	return isMark(value)
}

func text(value any, there bool) string {
	if !there {
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}
