package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	k8syaml "sigs.k8s.io/yaml"
)

// quoteMark stands in the place of quotes while kustomize works: a letter for private use, which no manifest has.
const quoteMark = "\ue5c7"

// quotes keep quoted scalars text on their way through kustomize, which writes an object that a JSON patch changes anew
// and without any quotes. Marked is only what would be read as something else than text once its variables are
// replaced: names that kustomize compares are not, and neither is data that it makes objects of.
type quotes struct {
	vars *substitution
	// objects are the files, by path, that hold objects or patches.
	objects map[string]bool
}

func newQuotes(vars map[string]string) *quotes {
	return &quotes{vars: newSubstitution(vars, false), objects: map[string]bool{}}
}

// learn takes note of which files a kustomization in the folder takes for objects or patches.
func (q *quotes) learn(folder string, k *types.Kustomization) {
	for _, e := range entries(k) {
		switch e.field {
		case "resources", "patch", "patchesStrategicMerge":
			q.objects[path.Join(folder, e.value)] = true
		}
	}
}

// file marks what a file has, if that is objects, patches, or a kustomization with patches.
func (q *quotes) file(name string, content []byte) []byte {
	switch {
	case q.vars == nil || !bytes.ContainsRune(content, '$'):
	case isKustomization(name):
		return q.rewrite(content, q.markPatches)
	case q.objects[name]:
		return q.rewrite(content, q.mark)
	}
	return content
}

// text marks an inline patch.
func (q *quotes) text(patch string) string { return string(q.rewrite([]byte(patch), q.mark)) }

// rewrite gives the content as the change leaves its documents. What cannot be read is for kustomize to complain about.
func (q *quotes) rewrite(content []byte, change func(*yaml.Node) bool) []byte {
	if q.vars == nil {
		return content
	}
	var made bytes.Buffer
	decoder, encoder := yaml.NewDecoder(bytes.NewReader(content)), yaml.NewEncoder(&made)
	changed := false
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return content
		}
		changed = change(&document) || changed
		if err := encoder.Encode(&document); err != nil {
			return content
		}
	}
	if err := encoder.Close(); err != nil || !changed {
		return content
	}
	if !json.Valid(content) {
		return made.Bytes()
	}
	// A list that begins with a bracket has to be JSON to be a patch.
	if converted, err := k8syaml.YAMLToJSON(made.Bytes()); err == nil {
		return converted
	}
	return content
}

// mark marks all values that are written as text and would not be read as such.
func (q *quotes) mark(node *yaml.Node) (marked bool) {
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			marked = q.mark(node.Content[i]) || marked
		}
	case node.Kind != yaml.ScalarNode:
		for _, child := range node.Content {
			marked = q.mark(child) || marked
		}
	case node.Style != 0 && node.ShortTag() == yaml.NodeTagString && strings.Contains(node.Value, "$"):
		made, err := q.vars.expand(node.Value)
		if marked = err == nil && (&yaml.Node{Kind: yaml.ScalarNode, Value: made}).ShortTag() != yaml.NodeTagString; marked {
			node.Value = quoteMark + node.Value
		}
	}
	return marked
}

// markPatches marks the patches that stand as text in a kustomization: under their key, or in a list of such.
func (q *quotes) markPatches(node *yaml.Node) (marked bool) {
	for i, child := range node.Content {
		inline := node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "patch"
		if child.Kind != yaml.ScalarNode {
			marked = q.markPatches(child) || marked
		} else if text := q.text(child.Value); inline && text != child.Value {
			child.Value, marked = text, true
		}
	}
	return marked
}

// unmark gives marked scalars their quotes back.
func unmark(node *yaml.Node) {
	if strings.Contains(node.Value, quoteMark) {
		node.Value, node.Style = strings.ReplaceAll(node.Value, quoteMark, ""), yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		unmark(child)
	}
}
