package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"sluice.dev/sluice/internal/engine"
)

// ownedField is a field of an object, and who has set it.
type ownedField struct {
	Path string `json:"path"`
	// Value is left out of a Secret, and of a field that is not there.
	Value  *string      `json:"value,omitempty"`
	Hidden bool         `json:"hidden,omitempty"`
	Owners []fieldOwner `json:"owners"`
	// SetByRelease says that an installation's manager is one of them.
	SetByRelease bool `json:"setByRelease"`
}

// fieldOwner is a manager of a field, as the API server records it.
type fieldOwner struct {
	Manager     string     `json:"manager"`
	Operation   string     `json:"operation"`
	Subresource string     `json:"subresource,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	// Within says that it owns fields within this one, or the whole that it is in, and not the field by itself.
	Within bool `json:"within,omitempty"`
}

// parseField reads a path: names with dots between them, and in brackets a name that has dots itself, the place of an item in a
// list, or fields that tell an item of a list from others.
func parseField(text string) (fieldpath.Path, error) {
	var path fieldpath.Path
	wrong := usage("--field "+text+" is no path", "write it as spec.replicas, spec.template.spec.containers[name=app].image or metadata.annotations[a.b/c]")
	for rest := strings.TrimPrefix(text, "."); rest != ""; {
		if inner, bracketed := strings.CutPrefix(rest, "["); bracketed {
			within, after, closed := strings.Cut(inner, "]")
			if !closed || within == "" {
				return nil, wrong
			}
			path, rest = append(path, bracket(within)), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, wrong
		}
		path = append(path, fieldpath.PathElement{FieldName: new(rest[:end])})
		rest = strings.TrimPrefix(rest[end:], ".")
	}
	return path, nil
}

func bracket(text string) fieldpath.PathElement {
	if at, err := strconv.Atoi(text); err == nil {
		return fieldpath.PathElement{Index: &at}
	}
	if !strings.Contains(text, "=") {
		return fieldpath.PathElement{FieldName: new(strings.Trim(text, `'"`))}
	}
	var key value.FieldList
	for pair := range strings.SplitSeq(text, ",") {
		name, of, _ := strings.Cut(pair, "=")
		key = append(key, value.Field{Name: name, Value: value.NewValueInterface(of)})
	}
	return fieldpath.PathElement{Key: &key}
}

// ownersOf says who has set the field at the path.
func ownersOf(obj *unstructured.Unstructured, text string, path fieldpath.Path) *ownedField {
	told := &ownedField{Path: text}
	switch found, ok := at(obj.Object, path); {
	case obj.GetKind() == secretKind && obj.GroupVersionKind().Group == "":
		told.Hidden = true
	case ok:
		raw, err := json.Marshal(found)
		if err == nil {
			told.Value = new(string(raw))
		}
	}
	nearest := 0
	var around []fieldOwner
	for _, entry := range obj.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		owner := fieldOwner{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource}
		if entry.Time != nil {
			owner.Time = &entry.Time.Time
		}
		exact, within, depth := owns(set, path)
		owner.Within = !exact
		switch {
		case exact || within:
			told.Owners = append(told.Owners, owner)
		case depth > nearest:
			nearest, around = depth, []fieldOwner{owner}
		case depth == nearest && depth > 0:
			around = append(around, owner)
		}
	}
	if told.Owners == nil {
		told.Owners = around
	}
	told.SetByRelease = slices.ContainsFunc(told.Owners, func(o fieldOwner) bool { return strings.HasPrefix(o.Manager, engine.ManagerPrefix) })
	return told
}

// owns says whether a manager's fields have the path itself, something within it, or else how many elements of the path lead to
// a whole that they have.
func owns(set *fieldpath.Set, path fieldpath.Path) (exact, within bool, depth int) {
	set.Iterate(func(owned fieldpath.Path) {
		for i := range min(len(owned), len(path)) {
			if !fits(path[i], owned[i]) {
				return
			}
		}
		switch {
		case len(owned) == len(path):
			exact = true
		case len(owned) > len(path):
			within = true
		case owned[len(owned)-1].FieldName != nil:
			depth = max(depth, len(owned))
		}
	})
	return exact, within, depth
}

// fits says whether an element that somebody typed is this one. Of an item's key a part will do.
func fits(typed, owned fieldpath.PathElement) bool {
	if typed.Key == nil || owned.Key == nil {
		return typed.Equals(owned)
	}
	for _, want := range *typed.Key {
		if !slices.ContainsFunc(*owned.Key, func(f value.Field) bool {
			return f.Name == want.Name && fmt.Sprint(f.Value.Unstructured()) == want.Value.Unstructured()
		}) {
			return false
		}
	}
	return true
}

// at is what stands at the path.
func at(in any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch list, fields := asList(in), asMap(in); {
		case element.FieldName != nil:
			var found bool
			if in, found = fields[*element.FieldName]; !found {
				return nil, false
			}
		case element.Index != nil:
			if *element.Index < 0 || *element.Index >= len(list) {
				return nil, false
			}
			in = list[*element.Index]
		default:
			i := slices.IndexFunc(list, func(item any) bool {
				return !slices.ContainsFunc(*element.Key, func(f value.Field) bool {
					has, found := asMap(item)[f.Name]
					return !found || fmt.Sprint(has) != f.Value.Unstructured()
				})
			})
			if i < 0 {
				return nil, false
			}
			in = list[i]
		}
	}
	return in, true
}

func asList(in any) []any { list, _ := in.([]any); return list }

func asMap(in any) map[string]any { fields, _ := in.(map[string]any); return fields }

// text is the field in one line.
func (f *ownedField) text(t table) string {
	line := f.Path
	switch {
	case f.Hidden:
		line += " (hidden, as it is a Secret's)"
	case f.Value == nil:
		line += " is not there"
	default:
		line += " = " + *f.Value
	}
	var owners []string
	for _, owner := range f.Owners {
		owners = append(owners, owner.text(t))
	}
	switch {
	case len(owners) == 0:
		return line + "; nobody is on record as its owner"
	case f.SetByRelease:
		return line + "  by " + list(owners) + "; the release sets it"
	}
	return line + "  by " + list(owners) + "; the release does not set it"
}

func (o fieldOwner) text(t table) string {
	how := o.Operation
	if o.Subresource != "" {
		how += " of " + o.Subresource
	}
	if o.Time == nil {
		return o.Manager + " (" + how + ")"
	}
	return o.Manager + " (" + how + "), " + t.since(*o.Time) + " ago"
}
