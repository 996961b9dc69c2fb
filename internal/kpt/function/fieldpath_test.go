package function

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

func TestPathsAreTakenApart(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]fieldPath{
		"metadata.name":                    {{key: "metadata"}, {key: "name"}},
		`metadata.annotations.a\.b/c`:      {{key: "metadata"}, {key: "annotations"}, {key: "a.b/c"}},
		"metadata.annotations.[a.b/c]":     {{key: "metadata"}, {key: "annotations"}, {key: "a.b/c"}},
		"spec.containers.[name=a.b].image": {{key: "spec"}, {key: "containers"}, {where: true, key: "name", value: "a.b"}, {key: "image"}},
		"spec.args.[=--x=y]":               {{key: "spec"}, {key: "args"}, {where: true, value: "--x=y"}},
		"spec.*.0":                         {{key: "spec"}, {every: true}, {key: "0"}},
		"data.[*]":                         {{key: "data"}, {key: "*"}},
		"data.a=b":                         {{key: "data"}, {key: "a=b"}},
		"":                                 nil,
		"a..b":                             nil,
		"a.":                               nil,
		".a":                               nil,
		"a.[b":                             nil,
		"a.[b]c":                           nil,
		"a.[]":                             nil,
		"a.b.c.[=]":                        {{key: "a"}, {key: "b"}, {key: "c"}, {where: true}},
	} {
		got, err := parsePath(path)
		if (err != nil) != (want == nil) {
			t.Errorf("%q: %v", path, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
}

func TestAPartIsPutInItsPlaceOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		whole, value string
		index        int
		want         string
	}{
		{"a:b:c", "x", 0, "x:b:c"},
		{"a:b:c", "x", 2, "a:b:x"},
		{"a:b:c", "x", 3, "a:b:c:x"},
		{"a:b:c", "x", -1, "x:a:b:c"},
		{"a:b", "x:y", 0, "x:y:b"},
		{"a:b", "x:y", 1, "a:x:y"},
		{"a", "x", 9, "a:x"},
		{"", "x", 0, "x"},
		{"a:b", "", 0, ":b"},
	} {
		once := splice(c.whole, c.value, ":", c.index)
		if once != c.want {
			t.Errorf("%+v: %q", c, once)
		}
		if twice := splice(once, c.value, ":", c.index); twice != once {
			t.Errorf("%+v: again it is %q", c, twice)
		}
	}
}

// FuzzReplacementPath holds that no path breaks anything, and that a value is not put anywhere twice.
func FuzzReplacementPath(f *testing.F) {
	f.Add("spec.template.spec.containers.[name=app].image", "spec: {template: {spec: {containers: [{name: app}]}}}", true, "x")
	f.Add("spec.args.[=a]", "spec: {args: [a, b]}", false, "c")
	f.Add("spec.list.[name=a].name", "spec: {list: [{name: a}]}", true, "b")
	f.Add("data.*", "data: {a: b, c: {d: e}}", false, "{f: g}")
	f.Add("spec.0.1", "spec:\n- [a]\n- b\n", true, "[]")
	f.Add(`metadata.annotations.a\.b`, "metadata:", true, "1")
	f.Add("a.*.b", "a: [{b: 1}, {b: 2}]", true, "~")
	f.Fuzz(func(t *testing.T, from, document string, create bool, written string) {
		path, err := parsePath(from)
		if err != nil {
			return
		}
		var root, value yaml.Node
		if yaml.Unmarshal([]byte(document), &root) != nil || yaml.Unmarshal([]byte(written), &value) != nil ||
			len(root.Content) != 1 || len(value.Content) != 1 || root.Content[0].Kind != yaml.MappingNode ||
			hasAlias(&root) || hasAlias(&value) {
			return
		}
		node := root.Content[0]
		resource := &kpt.Resource{File: "a.yaml", Node: yaml.NewRNode(node)}
		r := &run{room: &room{left: 1 << 20, most: 1 << 20, values: 1 << 20}}
		one := &object{resource: resource, root: node}
		if r.write(one, path, from, fieldOptions{Create: create}, copyNode(value.Content[0])) != nil {
			return
		}
		once, _ := yaml.Marshal(node)
		err = r.write(one, path, from, fieldOptions{Create: create}, copyNode(value.Content[0]))
		twice, _ := yaml.Marshal(node)
		if err != nil && !isNull(value.Content[0]) {
			t.Errorf("%q of %q cannot be written again: %v", from, document, err)
		}
		if len(twice) > len(once) {
			t.Errorf("%q of %q grows:\n%s\n%s", from, document, once, twice)
		}
	})
}
