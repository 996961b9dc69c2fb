package kpt

import (
	"fmt"
	"slices"

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

// checkKptfile refuses what kpt refuses.
func checkKptfile(r *Resource) error {
	problem, node := kptfileShape().check("", r.Node.YNode())
	if problem == "" {
		return nil
	}
	return &SyntaxError{File: r.File, Line: lineIn(r, node), Problem: problem}
}

// check says what is wrong with the node at the path, and where.
func (s *shape) check(path string, node *yaml.Node) (problem string, culprit *yaml.Node) {
	value := resolve(node)
	if s == nil || value.Kind == yaml.ScalarNode && value.ShortTag() == yaml.NodeTagNull {
		return "", nil
	}
	if value.Kind != s.kind {
		return fmt.Sprintf("%s is %s, and not %s", path, kindName(value.Kind), kindName(s.kind)), node
	}
	if s.kind == yaml.MappingNode {
		return s.checkMap(path, value)
	}
	for i, element := range value.Content {
		if s.kind == yaml.SequenceNode {
			if problem, culprit := s.each.check(fmt.Sprintf("%s[%d]", path, i), element); problem != "" {
				return problem, culprit
			}
		}
	}
	return "", nil
}

func (s *shape) checkMap(path string, node *yaml.Node) (problem string, culprit *yaml.Node) {
	seen := []string{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := key.Value
		if path != "" {
			name = path + "." + key.Value
		}
		below, known := s.each, true
		if s.fields != nil {
			below, known = s.fields[key.Value]
		}
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			return name + " is not a field of a Kptfile", key
		case slices.Contains(seen, key.Value):
			return name + " is there twice", key
		}
		seen = append(seen, key.Value)
		if problem, culprit := below.check(name, value); problem != "" {
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
