package lookups

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/printable"
)

const (
	// maxText bounds a text that is kept of an object, and maxFields all that is kept of its spec and status, in bytes.
	maxText   = 1 << 10
	maxFields = 16 << 10
	// perValue is what each value counts beside its text.
	perValue = 16
	// maxPaths bounds the paths of a kind, and maxDepth the names in one.
	maxPaths = 64
	maxDepth = 16
	maxPath  = 512
)

// Allowed says what may be seen of the spec and status of objects, by their kind. Nil is nothing.
type Allowed map[schema.GroupVersionKind]tree

// tree has the names of fields below a field. One without any stands for all that is below.
type tree map[string]tree

// entry is what an allow list says of a kind.
type entry struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Fields     []string `json:"fields"`
}

// ReadAllowed reads an allow list: texts with a YAML list of kinds each. What is wrong is told by the place, and the rest counts.
func ReadAllowed(data map[string]string) (Allowed, []error) {
	allowed, problems := Allowed{}, []error(nil)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var entries []entry
		if err := yaml.UnmarshalStrict([]byte(data[key]), &entries); err != nil {
			problems = append(problems, fmt.Errorf("data[%s]: %s", key, printable.Line(err.Error(), 240)))
			continue
		}
		for i, e := range entries {
			if err := allowed.add(e); err != nil {
				problems = append(problems, fmt.Errorf("data[%s][%d]: %w", key, i, err))
			}
		}
	}
	return allowed, problems
}

// add adds the fields of an entry that are right.
func (a Allowed) add(e entry) error {
	version, err := schema.ParseGroupVersion(e.APIVersion)
	switch {
	case err != nil:
		return fmt.Errorf("apiVersion: %w", err)
	case version.Version == "" || e.Kind == "":
		return errors.New("apiVersion and kind have to be set")
	case version.Group == "" && e.Kind == "Secret":
		return errors.New("nothing of a Secret is ever seen")
	case len(e.Fields) > maxPaths:
		return fmt.Errorf("there are %d fields; at most %d are allowed", len(e.Fields), maxPaths)
	}
	var problems []error
	for _, field := range e.Fields {
		names, err := parsePath(field)
		if err != nil {
			problems = append(problems, fmt.Errorf("field %q: %w", printable.Line(field, 80), err))
			continue
		}
		gvk := version.WithKind(e.Kind)
		if a[gvk] == nil {
			a[gvk] = tree{}
		}
		a[gvk].add(names)
	}
	return errors.Join(problems...)
}

// parsePath reads the names of a path, which are apart by dots; a dot in a name has a backslash before it.
func parsePath(path string) ([]string, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("a path has at most %d bytes", maxPath)
	}
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			i++
			name.WriteByte('.')
		case path[i] == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(path[i])
		}
	}
	names = append(names, name.String())
	switch {
	case names[0] != "spec" && names[0] != "status":
		return nil, errors.New("a path begins with 'spec' or 'status'")
	case slices.Contains(names, ""):
		return nil, errors.New("a name in it is empty")
	case len(names) > maxDepth:
		return nil, fmt.Errorf("a path has at most %d names", maxDepth)
	}
	return names, nil
}

// add adds a path. A shorter one has all that a longer one has.
func (t tree) add(names []string) {
	name, rest := names[0], names[1:]
	below, there := t[name]
	switch {
	case len(rest) == 0:
		t[name] = tree{}
	case !there:
		t[name] = tree{}
		t[name].add(rest)
	case len(below) > 0:
		below.add(rest)
	}
}

// errLarge is an object of which more may be seen than is kept.
var errLarge = fmt.Errorf("what may be seen of its spec and status takes more than %d bytes; the operators' allow list has to name less of it", maxFields)

// of is a copy of what may be seen.
func (t tree) of(object map[string]any) (map[string]any, error) {
	if len(t) == 0 {
		return nil, nil //nolint:nilnil // Nothing may be seen.
	}
	left := maxFields
	seen, _ := t.seen(object, &left)
	if left < 0 {
		return nil, errLarge
	}
	fields, _ := seen.(map[string]any)
	return fields, nil
}

// seen copies what may be seen of a value, while there is room. Each element of a list is looked at as the list is.
func (t tree) seen(value any, left *int) (copied any, ok bool) {
	if *left -= perValue; *left < 0 {
		return nil, false
	}
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, min(len(value), max(len(t), perValue)))
		for key, below := range value {
			names, named := t[key]
			if len(t) > 0 && !named || len(key) > maxText {
				continue
			}
			if seen, ok := names.seen(below, left); ok {
				*left -= len(key)
				made[key] = seen
			}
		}
		return made, true
	case []any:
		made := make([]any, 0, min(len(value), *left/perValue))
		for _, below := range value {
			if seen, ok := t.seen(below, left); ok {
				made = append(made, seen)
			}
		}
		return made, true
	case string:
		*left -= len(value)
		return strings.Clone(value), len(t) == 0 && len(value) <= maxText
	default:
		return value, len(t) == 0
	}
}

// errMetadata is an object of which nobody keeps all that it is marked with.
var errMetadata = fmt.Errorf("its labels and annotations take more than %d bytes together", maxFields)

// bound leaves out labels and annotations that take too much together, and says so.
func (o *Object) bound() error {
	left := maxFields
	for _, texts := range []*map[string]string{&o.Labels, &o.Annotations} {
		for key, value := range *texts {
			left -= len(key) + len(value) + perValue
		}
		if left < 0 {
			*texts = nil
		}
	}
	if left < 0 {
		return errMetadata
	}
	return nil
}

// short are annotations that expressions get to see.
func short(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(_, value string) bool { return len(value) > maxText })
	return annotations
}
