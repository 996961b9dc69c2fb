package merge

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// controllerAnnotations begin the annotations of a Kptfile that are the controller's own record.
const controllerAnnotations = "packages.sluice.dev/"

// kptfileShape is what is known of Kptfiles: where a package comes from is not merged, and lists have their keys.
func kptfileShape() *shape {
	keyed := func(key string) *shape { return &shape{keys: []keyField{{name: key}}} }
	set, open := &shape{set: true}, &shape{open: true}
	function := &shape{fields: map[string]*shape{"configMap": open}}
	functions := &shape{functions: true, every: function}
	return &shape{fields: map[string]*shape{
		"metadata": {fields: map[string]*shape{
			"labels": open, "annotations": {open: true, upstreamsKeys: controllerAnnotations},
		}},
		"upstream":     {upstreams: true},
		"upstreamLock": {upstreams: true},
		// What waits for nothing, and where nothing is reported, may be missing: that takes no gate and no report from others.
		"info": {open: true, fields: map[string]*shape{"emails": set, "keywords": set, "readinessGates": keyed("conditionType")}},
		// A pipeline that is missing has no functions, and no side's function is lost because the other has none left.
		"pipeline":  {open: true, fields: map[string]*shape{"mutators": functions, "validators": functions}},
		"inventory": {fields: map[string]*shape{"labels": open, "annotations": open}},
		"status":    {open: true, fields: map[string]*shape{"conditions": keyed("type")}},
	}}
}

// matchFunctions knows functions of a pipeline again: by all they say, by their names (the controller's own have one that says
// whose they are), and those that had no name by what they run.
func (m *merger) matchFunctions(all *elements) []*row {
	nameless := func(node *yaml.Node) bool { return kpt.Text(node, "name") == "" }
	rows := match(all, []round[*yaml.Node]{
		{key: m.wholeKey, inOrder: true},
		{key: fieldKey(keyField{name: "name"})},
		{key: ownKey, changed: true},
		{key: functionKey("configPath"), changed: true, base: nameless},
		{key: functionKey(), changed: true, base: nameless, inOrder: true},
	})
	for _, r := range rows {
		for _, of := range []side{inTheirs, inLocal} {
			// Who gave it a name has made another function of it, and that does not go with the one it was.
			r.replaced[of] = r.has(inBase) && r.has(of) && nameless(all.of(r, inBase)) && !nameless(all.of(r, of))
		}
	}
	return rows
}

// ownKey is the name of a controller's function without the index in it, which changes with the functions before it.
func ownKey(node *yaml.Node) (key, label string, ok bool) {
	name := kpt.Text(node, "name")
	owner, ok := kpt.FunctionOwner(name)
	if !ok {
		return "", "", false
	}
	_, rest, _ := strings.Cut(name, owner.String()+"/")
	_, called, _ := strings.Cut(rest, "/")
	return owner.String() + "\x00" + called + "\x00" + kpt.ImageName(kpt.Text(node, "image")), stepTo("name=" + name), true
}

// functionKey is what a function runs, in whatever version, with these fields, which it must have.
func functionKey(fields ...string) func(*yaml.Node) (string, string, bool) {
	return func(node *yaml.Node) (key, label string, ok bool) {
		field, runs := "image", kpt.ImageName(kpt.Text(node, "image"))
		if runs == "" {
			field, runs = "exec", kpt.Text(node, "exec")
		}
		if runs == "" {
			return "", "", false
		}
		key = field + "\x00" + runs
		for _, field := range fields {
			text := kpt.Text(node, field)
			if text == "" {
				return "", "", false
			}
			key += "\x00" + text
		}
		return key, stepTo(field + "=" + runs), true
	}
}
