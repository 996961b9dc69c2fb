package kpt

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// shape is what a field may hold.
type shape struct {
	kind yaml.Kind
	// fields are those that a map may have; nil for any, with values of the shape each.
	fields map[string]*shape
	// each is what the elements of a list are, or the values of a map with any keys; nil for anything.
	each *shape
}

func text() *shape                           { return &shape{kind: yaml.ScalarNode} }
func texts() *shape                          { return &shape{kind: yaml.MappingNode, each: text()} }
func list(each *shape) *shape                { return &shape{kind: yaml.SequenceNode, each: each} }
func object(fields map[string]*shape) *shape { return &shape{kind: yaml.MappingNode, fields: fields} }

// fields are texts, all of them.
func fields(names ...string) map[string]*shape {
	all := map[string]*shape{}
	for _, name := range names {
		all[name] = text()
	}
	return all
}

// with adds a field that is something else than a text.
func with(all map[string]*shape, name string, other *shape) map[string]*shape {
	all[name] = other
	return all
}

// kptfileShape is the whole of a Kptfile of v1. Of what was found out by others, only where it stands matters.
func kptfileShape() *shape {
	selector := object(with(with(fields("apiVersion", "kind", "name", "namespace"), "labels", texts()), "annotations", texts()))
	function := object(with(with(with(fields("image", "exec", "configPath", "name", "tag"),
		"configMap", texts()), "selectors", list(selector)), "exclude", list(selector)))
	git := object(fields("repo", "directory", "ref"))
	return object(map[string]*shape{
		"apiVersion": text(), "kind": text(),
		// What else metadata may have is Kubernetes' to say.
		"metadata": {kind: yaml.MappingNode},
		"upstream": object(with(fields("type", "updateStrategy"), "git", git)),
		"upstreamLock": object(with(with(fields("type"), "git", object(fields("repo", "directory", "ref", "commit"))),
			"generic", object(fields("storeID", "resourceID", "resourceVersion")))),
		"info": object(with(with(with(fields("site", "license", "licenseFile", "description", "man"),
			"emails", list(text())), "keywords", list(text())), "readinessGates", list(object(fields("conditionType"))))),
		"pipeline":  object(map[string]*shape{"mutators": list(function), "validators": list(function)}),
		"inventory": object(with(with(fields("namespace", "name", "inventoryID"), "labels", texts()), "annotations", texts())),
		"status": object(map[string]*shape{
			"conditions":   list(object(fields("type", "status", "reason", "message"))),
			"renderStatus": {kind: yaml.MappingNode},
		}),
	})
}

// maxNodes is how much a Kptfile may say; only with aliases of aliases can it say more.
const maxNodes = 50_000

// checkKptfile refuses what kpt refuses.
func checkKptfile(r *Resource) error {
	c := checker{left: maxNodes}
	problem, node := c.check(kptfileShape(), "", r.Node.YNode())
	if problem == "" {
		return nil
	}
	return r.problem(node, problem)
}

// checker goes through a Kptfile.
type checker struct{ left int }

// check says what is wrong with the node at the path, and where.
func (c *checker) check(s *shape, path string, node *yaml.Node) (problem string, culprit *yaml.Node) {
	value := resolve(node)
	if c.left--; c.left < 0 {
		return "it says more by aliases than anybody wants to read", node
	}
	if s == nil || value.Kind == yaml.ScalarNode && value.ShortTag() == yaml.NodeTagNull {
		return "", nil
	}
	if value.Kind != s.kind {
		return fmt.Sprintf("%s is %s, and not %s", path, kindName(value.Kind), kindName(s.kind)), node
	}
	if s.kind == yaml.MappingNode {
		return c.checkMap(s, path, value)
	}
	for i, element := range value.Content { // A text has no content.
		if problem, culprit := c.check(s.each, fmt.Sprintf("%s[%d]", path, i), element); problem != "" {
			return problem, culprit
		}
	}
	return "", nil
}

func (c *checker) checkMap(s *shape, path string, node *yaml.Node) (problem string, culprit *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		below, known := s.each, true
		if s.fields != nil {
			below, known = s.fields[key.Value]
		}
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			return name + " is not a field of a Kptfile", key
		case seen[key.Value]:
			return name + " is there twice", key
		}
		seen[key.Value] = true
		if problem, culprit := c.check(below, name, value); problem != "" {
			return problem, culprit
		}
	}
	return "", nil
}

func kindName(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}
