package merge

import (
	"bufio"
	_ "embed"
	"maps"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// shape is what is known of a value before it is seen: how its lists are to be matched, above all. A nil shape knows nothing.
type shape struct {
	// fields are those of a map that more is known of, and every is what all other values of a map or elements of a list are.
	fields map[string]*shape
	every  *shape
	// keys are the fields that tell the elements of a list apart.
	keys []keyField
	// set is a list of which no element is there twice.
	set bool
	// functions is a list of functions of a Kptfile.
	functions bool
	// open is a map of anybody's entries. That it is missing says the same as that it is empty.
	open bool
	// unions are groups of fields that exclude each other, and grants is a list of the rules of a role.
	unions []union
	grants bool
	// upstreams is a value that people have no say in, and upstreamsKeys begin the keys of a map that have such values.
	upstreams     bool
	upstreamsKeys string
}

// keyField is a field that tells elements apart, and what it says where it is missing.
type keyField struct {
	name     string
	fallback string
}

// field is the shape of the value under the key of a map.
func (s *shape) field(key string) *shape {
	if s == nil {
		return nil
	}
	if known, found := s.fields[key]; found {
		return known
	}
	if s.upstreamsKeys != "" && strings.HasPrefix(key, s.upstreamsKeys) {
		return &shape{upstreams: true}
	}
	return s.every
}

// element is the shape of every element of a list.
func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.every
}

// groupKind is what schemas are looked up by first; objects of another version are most often alike.
type groupKind struct{ group, kind string }

// shapes are the schemas that objects can have.
type shapes struct {
	// definitions are the CustomResourceDefinitions of the packages, those that count more first.
	definitions map[groupKind][]*yaml.Node
	// known are those that were asked for.
	known map[groupKind]map[string]*shape
}

// newShapes knows Kubernetes' own kinds and those that the packages define.
func newShapes(packages ...[]*kpt.Resource) *shapes {
	s := &shapes{definitions: map[groupKind][]*yaml.Node{}, known: map[groupKind]map[string]*shape{}}
	for _, items := range packages {
		for _, item := range items {
			if of, ok := defines(item); ok {
				s.definitions[of] = append(s.definitions[of], item.Node.YNode())
			}
		}
	}
	return s
}

// of is the shape of an object.
func (s *shapes) of(r *kpt.Resource) *shape {
	if r.IsKptfile() {
		return kptfileShape()
	}
	group, version := r.GroupVersion()
	kind := groupKind{group: group, kind: r.Kind()}
	versions, found := s.known[kind]
	if !found {
		versions = maps.Clone(builtin().kinds[kind])
		if versions == nil {
			versions = map[string]*shape{}
		}
		for _, definition := range s.definitions[kind] {
			written, err := newPlain(definition)
			if err != nil {
				continue // It is merged as well, and that says what is wrong.
			}
			for version, known := range definedShapes(written.root) {
				if _, found := versions[version]; !found {
					versions[version] = known
				}
			}
		}
		s.known[kind] = versions
	}
	if known, found := versions[version]; found {
		return known
	}
	// A version that nobody describes is read as the last of those that are described.
	last := ""
	for version := range versions {
		last = max(last, version)
	}
	if last != "" {
		return versions[last]
	}
	return &shape{fields: map[string]*shape{"metadata": builtin().metadata()}}
}

//go:embed shapes.txt
var shapesText string

// table is what shapes.txt says.
type table struct {
	types map[string]*shape
	kinds map[groupKind]map[string]*shape
}

func (t *table) metadata() *shape { return t.types["meta.v1.ObjectMeta"] }

// builtin are the kinds of Kubernetes itself.
var builtin = sync.OnceValue(readTable) //nolint:gochecknoglobals // Read once, and only read from then on.

// readTable reads lines of "kind GROUP VERSION KIND TYPE" and "TYPE FIELD FORM OF KEYS…". The table comes with the program and is
// tested with it: what is not as expected is passed over.
func readTable() *table {
	t := &table{types: map[string]*shape{}, kinds: map[groupKind]map[string]*shape{}}
	for lines := bufio.NewScanner(strings.NewReader(shapesText)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "kind" && len(words) == 5:
			kind := groupKind{group: strings.TrimPrefix(words[1], "core"), kind: words[3]}
			if t.kinds[kind] == nil {
				t.kinds[kind] = map[string]*shape{}
			}
			t.kinds[kind][words[2]] = t.shape(words[4])
		case len(words) >= 4:
			t.field(words[0], words[1], words[2], words[3], words[4:])
		}
	}
	return t
}

// shape is that of a type, which may be described further down.
func (t *table) shape(name string) *shape {
	if name == "-" {
		return nil
	}
	if t.types[name] == nil {
		t.types[name] = &shape{fields: map[string]*shape{}}
	}
	return t.types[name]
}

func (t *table) field(of, name, form, what string, keys []string) {
	value := t.shape(what)
	switch form {
	case "union":
		t.shape(of).unions = append(t.shape(of).unions, newUnion(keys))
		return
	case "grants":
		value = &shape{grants: true}
	case "list":
		value = &shape{every: value}
		for _, key := range keys {
			field, fallback, _ := strings.Cut(key, "=")
			value.keys = append(value.keys, keyField{name: field, fallback: fallback})
		}
	case "set":
		value = &shape{set: true}
	case "map":
		value = &shape{every: value}
	case "open":
		value = &shape{open: true}
	}
	t.shape(of).fields[name] = value
}
