package function

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// config is what a function is told: values by their keys, or an object of the function's own kind.
type config struct {
	// data are the values of a ConfigMap, and of an entry's configMap. It is nil where there is an object.
	data map[string]string
	// name is what the ConfigMap is called, empty for an entry's configMap.
	name string
	// own is an object of a kind in fn.kpt.dev, or of any kind for a function that takes objects, which from is then.
	own  *yaml.Node
	from *object
	// object is all of what a function of somebody else's is told, in its own words.
	object *yaml.Node
}

// errNoConfig says that a function needs to be told something.
var errNoConfig = errors.New("there is no configuration: the entry needs a configMap or a configPath")

// readConfig tells ConfigMaps and functions' own kinds apart.
func readConfig(root *yaml.Node) (*config, error) {
	kind, version := kpt.Text(root, "kind"), kpt.Text(root, "apiVersion")
	switch {
	case kind == "ConfigMap" && version == "v1":
		data, err := readData(kpt.Lookup(root, "data"))
		if err != nil {
			return nil, err
		}
		return &config{data: data, name: kpt.Text(root, "metadata", "name")}, nil
	case version == apiVersion:
		return &config{own: root}, nil
	default:
		return nil, fmt.Errorf("%s of %s is no configuration: it has to be a ConfigMap of v1 or of a kind of %s", kind, version, apiVersion)
	}
}

// readData reads the data of a ConfigMap. A number is the text it is written as.
func readData(data *yaml.Node) (map[string]string, error) {
	read := map[string]string{}
	if isNull(data) {
		return read, nil
	}
	if data.Kind != yaml.MappingNode {
		return nil, errors.New("data: is no map")
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i], data.Content[i+1]
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("data.%s: is no string; a list or a map stands in a block of text, behind a |", key.Value)
		}
		if _, twice := read[key.Value]; twice {
			return nil, fmt.Errorf("data.%s: is there twice", key.Value)
		}
		if isNull(value) {
			read[key.Value] = ""
			continue
		}
		read[key.Value] = value.Value
	}
	return read, nil
}

// decode reads the function's own kind into a struct, whose fields are all there may be.
func (c *config) decode(into any, kinds ...string) error {
	if kind := kpt.Text(c.own, "kind"); !slices.Contains(kinds, kind) {
		return fmt.Errorf("the configuration is of kind %s; this function's is %s", kind, strings.Join(kinds, " or "))
	}
	content, err := yaml.Marshal(c.own)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return explain(err)
	}
	return nil
}

// explain leaves out what says something of this program and nothing of the configuration: names of types, and lines of a text
// that nobody has seen.
func explain(err error) error {
	problems := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
	problems = ofTheDecoder.ReplaceAllString(problems, "$1")
	return errors.New("the configuration: " + strings.Join(strings.Split(problems, "\n"), ", "))
}

var ofTheDecoder = regexp.MustCompile(`(?m)^\s*line \d+: | in type \S+$|^yaml: |(mapping key \S+ already defined).*$`)

// only fails for values under other keys than these, so that a misspelt one is noticed.
func (c *config) only(keys ...string) error {
	for _, key := range slices.Sorted(maps.Keys(c.data)) {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("data.%s: is not known; there are %s", key, strings.Join(keys, ", "))
		}
	}
	return nil
}

// head are the fields that every object has. What metadata says makes no difference.
type head struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
}
