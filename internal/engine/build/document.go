package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/transport"
)

// document is the tree of one object, and where it stands.
type document struct {
	origin string
	node   *yaml.Node
}

// rendered is an object, and where it came from.
type rendered struct {
	origin string
	object map[string]any
}

// output is what was rendered, and the names of the variables that this took.
type output struct {
	objects []rendered
	used    []string
}

// plain renders the files without kustomize. Simple leaves to a worker what may take long.
func (j *job) plain(from source, simple bool) (output, error) {
	c := newConverter(j.Substitute, simple)
	var made []rendered
	nodes := 0
	for _, f := range j.Found {
		content, err := from.ask(frameRead, f.Name)
		if err != nil {
			return output{}, err
		}
		if nodes += separators(content); simple && nodes > maxSeparators {
			return output{}, errHeavy
		}
		found, err := documents(f.Name, content)
		if err != nil {
			return output{}, err
		}
		for _, d := range found {
			object, err := c.object(d)
			if err != nil {
				return output{}, err
			}
			if isLocal(object) {
				continue
			}
			made = append(made, rendered{origin: d.origin, object: object})
		}
		if len(made) > maxDocuments {
			return output{}, fmt.Errorf("%w: more than %d objects", ErrLimit, maxDocuments)
		}
	}
	return output{made, c.used()}, nil
}

// maxSeparators is from how many separators on manifests are parsed in a worker. The manifests of a thousand objects have
// a tenth as many.
const maxSeparators = 300_000

// separators counts what can begin a scalar or collection, each of which takes some 200 bytes of memory.
func separators(content []byte) (count int) {
	for _, c := range content {
		switch c {
		case ',', ':', '[', '{', '-', '?', '\n', '\r':
			count++
		}
	}
	return count
}

// documents gives the documents of a file, without empty ones, and lists taken apart.
func documents(name string, content []byte) ([]document, error) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("%w: %s is not UTF-8", ErrDocument, transport.PrintableQuoted(name))
	}
	var all []document
	number := 0
	for part := range split(content) {
		origin := func() string { return fmt.Sprintf("%s, document %d", transport.PrintableQuoted(name), number) }
		if len(part) > maxDocument {
			number++
			return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrLimit, origin(), maxDocument)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(part))
		for {
			var root yaml.Node
			err := decoder.Decode(&root)
			if errors.Is(err, io.EOF) {
				break
			}
			number++
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %s", ErrDocument, origin(), transport.Printable(err.Error()))
			}
			if number > maxDocuments {
				return nil, fmt.Errorf("%w: %s has more than %d documents", ErrLimit, transport.PrintableQuoted(name), maxDocuments)
			}
			found, err := flatten(document{origin: origin(), node: &root}, 0)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// split cuts a stream before each line that begins a document. YAML allows no such line inside of one.
func split(content []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		start, at := 0, 0
		blank := true // Directives and comments before the first document belong to it.
		for line := range bytes.Lines(content) {
			marker := isMarker(line)
			if marker && !blank {
				if !yield(content[start:at]) {
					return
				}
				start = at
			}
			blank = blank && !marker && isBlank(line)
			at += len(line)
		}
		if !blank {
			yield(content[start:])
		}
	}
}

func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#' || line[0] == '%'
}

// maxLists is how deep lists may hold lists.
const maxLists = 8

// flatten gives the object of a document, or those of the list that it is.
func flatten(d document, depth int) ([]document, error) {
	for d.node.Kind == yaml.DocumentNode {
		if len(d.node.Content) == 0 {
			return nil, nil
		}
		d.node = d.node.Content[0]
	}
	switch {
	case d.node.Kind == yaml.ScalarNode && d.node.ShortTag() == yaml.NodeTagNull, d.node.Kind == 0:
		return nil, nil
	case d.node.Kind == yaml.MappingNode && len(d.node.Content) == 0:
		return nil, nil
	case d.node.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%w: %s is no mapping", ErrDocument, d.origin)
	}
	items, ok := listItems(d.node)
	if !ok {
		return []document{d}, nil
	}
	if depth == maxLists {
		return nil, fmt.Errorf("%w: %s: lists in lists", ErrLimit, d.origin)
	}
	var all []document
	for i, item := range items {
		found, err := flatten(document{origin: fmt.Sprintf("%s, item %d", d.origin, i+1), node: item}, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(all) > maxDocuments {
			return nil, fmt.Errorf("%w: %s: more than %d objects", ErrLimit, d.origin, maxDocuments)
		}
	}
	return all, nil
}

// listItems gives the items of what is a list to kustomize and kubectl.
func listItems(node *yaml.Node) (items []*yaml.Node, ok bool) {
	isList := false
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Value == "kind":
			isList = value.Kind == yaml.ScalarNode && strings.HasSuffix(value.Value, "List")
		case key.Value == "items" && value.Kind == yaml.SequenceNode:
			items, ok = value.Content, true
		case key.Value == "items" && value.ShortTag() == yaml.NodeTagNull:
			ok = true
		}
	}
	return items, ok && isList
}

// isLocal says whether the object is configuration of kustomize, which leaves such objects out.
func isLocal(object map[string]any) bool {
	value, ok, _ := unstructured.NestedFieldNoCopy(object, "metadata", "annotations", konfig.IgnoredByKustomizeAnnotation)
	return ok && value != "false"
}
