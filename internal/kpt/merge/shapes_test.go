package merge

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTableSaysWhatTheLibrariesSay makes the table again: from the schema that comes with client-go, and for versions that
// Kubernetes no longer serves from the one that comes with kyaml.
func TestTableSaysWhatTheLibrariesSay(t *testing.T) {
	t.Parallel()
	types := clientTypes(t)
	kinds := clientKinds(t, types)
	addOldTypes(t, types, kinds)
	addUnions(types)
	want := "# Written by the test of this package, with -update. TYPE FIELD FORM OF KEYS…\n" + strings.Join(render(types, kinds), "\n") + "\n"
	if *update {
		if err := os.WriteFile("shapes.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shapesText); diff != "" {
		t.Errorf("run go test -update: %s", diff)
	}
}

// entry is a field of a type: its form, the type of what it holds, and the keys of a list.
type entry struct {
	form, of string
	keys     []string
}

// described are the fields of types, by the types' names.
type described map[string]map[string]entry

// clientType is a type as the schema of client-go has it.
type clientType struct {
	Name string `yaml:"name"`
	Map  struct {
		Fields []struct {
			Name    string     `yaml:"name"`
			Type    clientForm `yaml:"type"`
			Default any        `yaml:"default"`
		} `yaml:"fields"`
		Unions []struct {
			Discriminator string `yaml:"discriminator"`
			Fields        []struct {
				Name string `yaml:"fieldName"`
			} `yaml:"fields"`
		} `yaml:"unions"`
	} `yaml:"map"`
}

type clientForm struct {
	Scalar string `yaml:"scalar"`
	Named  string `yaml:"namedType"`
	List   *struct {
		Element      clientForm `yaml:"elementType"`
		Relationship string     `yaml:"elementRelationship"`
		Keys         []string   `yaml:"keys"`
	} `yaml:"list"`
	Map *struct {
		Element      clientForm `yaml:"elementType"`
		Relationship string     `yaml:"elementRelationship"`
	} `yaml:"map"`
}

func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func clientTypes(t *testing.T) described {
	t.Helper()
	name := filepath.Join(moduleFolder(t, "k8s.io/client-go"), "applyconfigurations", "internal", "internal.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && strings.Contains(literal.Value, "\n") {
			text, err = strconv.Unquote(literal.Value)
		}
		return true
	})
	read := struct {
		Types []clientType `yaml:"types"`
	}{}
	if err != nil || yaml.Unmarshal([]byte(text), &read) != nil {
		t.Fatal("the schema of client-go cannot be read")
	}
	defaults := map[string]map[string]string{}
	for _, one := range read.Types {
		defaults[one.Name] = map[string]string{}
		for _, field := range one.Map.Fields {
			if text, ok := field.Default.(string); ok && text != "" {
				defaults[one.Name][field.Name] = text
			}
		}
	}
	types := described{}
	for _, one := range read.Types {
		types[one.Name] = map[string]entry{}
		for _, field := range one.Map.Fields {
			types[one.Name][field.Name] = field.Type.entry(defaults)
		}
		for _, found := range one.Map.Unions {
			words := []string{}
			for _, field := range found.Fields {
				words = append(words, field.Name)
			}
			if found.Discriminator != "" {
				words = append(words, found.Discriminator+"=")
			}
			if len(words) > 1 {
				types[one.Name]["-"] = entry{form: "union", of: "-", keys: words}
			}
		}
	}
	return types
}

func (f clientForm) entry(defaults map[string]map[string]string) entry {
	switch {
	case f.List != nil && f.List.Relationship == "associative" && len(f.List.Keys) == 0:
		return entry{form: "set", of: "-"}
	case f.List != nil:
		found := entry{form: "list", of: f.List.Element.Named}
		for _, key := range f.List.Keys {
			if fallback := defaults[found.of][key]; fallback != "" {
				key += "=" + fallback
			}
			found.keys = append(found.keys, key)
		}
		return found
	case f.Map != nil && f.Map.Element.Scalar != "" && f.Map.Relationship == "atomic":
		return entry{form: "is", of: "-"} // Such as a selector, which is not the same with fewer entries.
	case f.Map != nil && f.Map.Element.Scalar != "":
		return entry{form: "open", of: "-"}
	case f.Map != nil:
		return entry{form: "map", of: f.Map.Element.Named}
	}
	return entry{form: "is", of: f.Named}
}

var groupName = regexp.MustCompile(`GroupName\s*=\s*"([^"]*)"`)

// clientKinds are the types that are kinds, by "GROUP VERSION KIND": they say what they are themselves.
func clientKinds(t *testing.T, types described) map[string]string {
	t.Helper()
	folder := moduleFolder(t, "k8s.io/api")
	kinds := map[string]string{}
	for name, fields := range types {
		rest, ours := strings.CutPrefix(name, "io.k8s.api.")
		words := strings.Split(rest, ".")
		if !ours || len(words) != 3 || fields["kind"].form == "" || fields["apiVersion"].form == "" || fields["metadata"].form == "" {
			continue
		}
		register, err := os.ReadFile(filepath.Join(folder, words[0], words[1], "register.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := groupName.FindSubmatch(register)
		if found == nil {
			t.Fatalf("%s: no name of the group", name)
		}
		kinds[kindLine(string(found[1]), words[1], words[2])] = name
	}
	return kinds
}

func kindLine(group, version, kind string) string {
	if group == "" {
		group = "core"
	}
	return group + " " + version + " " + kind
}

// oldType is a type as the schema of kyaml has it.
type oldType struct {
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Properties map[string]oldType `json:"properties"`
	Items      *oldType           `json:"items"`
	Additional json.RawMessage    `json:"additionalProperties"`
	Kinds      []struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
	ListType string   `json:"x-kubernetes-list-type"`
	MapKeys  []string `json:"x-kubernetes-list-map-keys"`
	MergeKey string   `json:"x-kubernetes-patch-merge-key"`
}

// addOldTypes adds what kyaml knows and client-go no longer does.
func addOldTypes(t *testing.T, types described, kinds map[string]string) {
	t.Helper()
	text, err := json.Marshal(openapi.Schema().Definitions)
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]oldType{}
	if err := json.Unmarshal(text, &old); err != nil {
		t.Fatal(err)
	}
	for name, one := range old {
		if types[name] == nil {
			types[name] = map[string]entry{}
			for field, property := range one.Properties {
				types[name][field] = property.entry()
			}
		}
		if len(one.Kinds) == 1 {
			line := kindLine(one.Kinds[0].Group, one.Kinds[0].Version, one.Kinds[0].Kind)
			if kinds[line] == "" {
				kinds[line] = name
			}
		}
	}
}

func (o *oldType) entry() entry {
	reference := func(one *oldType) string { return strings.TrimPrefix(one.Ref, "#/definitions/") }
	switch {
	case o.Items != nil && o.ListType == "set":
		return entry{form: "set"}
	case o.Items != nil:
		found := entry{form: "list", of: reference(o.Items), keys: o.MapKeys}
		if len(found.keys) == 0 && o.MergeKey != "" {
			found.keys = []string{o.MergeKey}
		}
		return found
	}
	var more oldType
	if json.Unmarshal(o.Additional, &more) == nil { // It may be a boolean, which says nothing of what is in the map.
		if isScalarType(more.Type) {
			return entry{form: "open"}
		}
		return entry{form: "map", of: reference(&more)}
	}
	return entry{form: "is", of: reference(o)}
}

// unions are those that the libraries' schemas do not tell, by the last words of their types' names: "*" stands for all other fields.
func unions() map[string][]string {
	rolling := []string{"rollingUpdate", "type=RollingUpdate"}
	return map[string][]string{
		"DaemonSetUpdateStrategy": rolling, "DeploymentStrategy": rolling, "StatefulSetUpdateStrategy": rolling,
		"EnvFromSource": {"configMapRef", "secretRef"}, "EnvVar": {"value", "valueFrom"}, "EnvVarSource": {"*"},
		"Handler": {"*"}, "LifecycleHandler": {"*"}, "Probe": {"exec", "grpc", "httpGet", "tcpSocket"},
		"IngressBackend": {"resource", "service"}, "NetworkPolicyPeer": {"*"},
		"MetricSpec": {"*", "type="}, "MetricTarget": {"*", "type="},
		"PodDisruptionBudgetSpec": {"maxUnavailable", "minAvailable"},
		"RoleRef":                 {"apiGroup", "kind=", "name"},
		"Volume":                  {"*", "-name"}, "VolumeProjection": {"*"},
		"PersistentVolumeSpec": {
			"*", "-accessModes", "-capacity", "-claimRef", "-mountOptions", "-nodeAffinity", "-persistentVolumeReclaimPolicy",
			"-storageClassName", "-volumeAttributesClassName", "-volumeMode",
		},
	}
}

// addUnions adds them to the types, and which lists are of the rules of a role.
func addUnions(types described) {
	for name, fields := range types {
		short := name[strings.LastIndexByte(name, '.')+1:]
		words := []string{}
		for _, word := range unions()[short] {
			if word != "*" {
				words = append(words, word)
				continue
			}
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				if !slices.Contains(unions()[short], "-"+field) && !slices.Contains(unions()[short], field+"=") {
					words = append(words, field)
				}
			}
		}
		words = slices.DeleteFunc(words, func(word string) bool { return word[0] == '-' })
		if len(words) > 1 {
			fields["-"] = entry{form: "union", of: "-", keys: words}
		}
		if strings.Contains(name, ".rbac.") && (short == "Role" || short == "ClusterRole") {
			fields["rules"] = entry{form: "grants", of: "-", keys: []string{"-"}}
		}
	}
}

// render writes the lines that say something, and leaves out types that lead to nothing.
func render(types described, kinds map[string]string) []string {
	for changed := true; changed; {
		changed = false
		for name, fields := range types {
			size := len(fields)
			maps.DeleteFunc(fields, func(_ string, found entry) bool {
				_, leads := types[found.of]
				return len(found.keys) == 0 && found.form != "set" && found.form != "open" && !leads
			})
			changed = changed || len(fields) != size
			if len(fields) == 0 {
				delete(types, name)
				changed = true
			}
		}
	}
	reached := map[string]bool{}
	var reach func(string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, found := range types[name] {
			reach(found.of)
		}
	}
	lines := []string{}
	for line, name := range kinds {
		if types[name] != nil && !strings.HasSuffix(line, "List") {
			lines = append(lines, "kind "+line+" "+name)
			reach(name)
		}
	}
	for name, fields := range types {
		for field, found := range fields {
			if reached[name] {
				of := found.of
				if types[of] == nil {
					of = "-"
				}
				lines = append(lines, strings.Join(append([]string{name, field, found.form, of}, found.keys...), " "))
			}
		}
	}
	short := strings.NewReplacer(
		"io.k8s.apimachinery.pkg.apis.", "", "io.k8s.apiextensions-apiserver.pkg.apis.", "",
		"io.k8s.kube-aggregator.pkg.apis.", "", "io.k8s.api.", "",
	)
	for i, line := range lines {
		lines[i] = short.Replace(line)
	}
	slices.Sort(lines)
	return lines
}
