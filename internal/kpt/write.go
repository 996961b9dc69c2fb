package kpt

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// write is the text of a file with the objects in it, nil for none.
func (r *Resources) write(name string, items []*Resource) ([]byte, error) {
	stay := map[*document]*Resource{}
	added := []*Resource{}
	for _, item := range items {
		if item.origin != nil && item.Index < len(r.files[name]) && r.files[name][item.Index] == item.origin {
			stay[item.origin] = item
			continue
		}
		added = append(added, item)
	}
	text := fileText{}
	for _, d := range r.files[name] {
		if err := text.keep(d, stay[d]); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	for _, item := range added {
		document, err := item.text()
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		text.add(document)
	}
	if text.gone && !text.says {
		return nil, nil
	}
	if !text.changed {
		return r.from[name].Content, nil
	}
	return text.Bytes(), nil
}

// fileText is the text of a file as it grows.
type fileText struct {
	bytes.Buffer
	// says is that there is more than comments, gone that a document was left out, and changed that anything is new.
	says, gone, changed bool
	// headless says that the last document was left out and had no line of --- before it: nor does the next one need it.
	headless bool
}

// keep appends a document of the file: as it is, as its object has become, or not at all.
func (t *fileText) keep(d *document, item *Resource) error {
	if item == nil && d.item {
		t.gone, t.changed = true, true
		t.headless = t.headless || t.Len() == 0 && !bytes.HasPrefix(d.text, []byte("---"))
		return nil
	}
	content := d.text
	if item != nil {
		var err error
		if content, err = item.text(); err != nil {
			return err
		}
		t.changed = t.changed || &content[0] != &d.text[0]
	}
	if t.headless && d.root != nil {
		content = withoutMarker(content)
		t.headless = false
	}
	t.says = t.says || d.root != nil
	_, _ = t.Write(content) // A buffer takes everything.
	return nil
}

// add appends a document that is new in the file.
func (t *fileText) add(content []byte) {
	if text := t.Bytes(); len(text) > 0 && text[len(text)-1] != '\n' {
		_ = t.WriteByte('\n') // A buffer takes everything.
	}
	if t.says && !bytes.HasPrefix(content, []byte("---")) {
		_, _ = t.WriteString("---\n")
	}
	t.says, t.changed = true, true
	_, _ = t.Write(content)
}

// withoutMarker is the document without the line of --- that it begins with, unless that says more.
func withoutMarker(content []byte) []byte {
	line, rest, found := bytes.Cut(content, []byte("\n"))
	if found && string(bytes.TrimRight(line, " \t\r")) == "---" {
		return rest
	}
	return content
}

// text is the document of the object: that which it was read from where nothing changed, and otherwise the same but for what
// changed.
func (r *Resource) text() ([]byte, error) {
	if r.origin == nil {
		return encode(r.Node.YNode())
	}
	root := *r.Document
	root.Content = []*yaml.Node{r.Node.YNode()}
	if stateOf(&root) == r.origin.state {
		return r.origin.text, nil
	}
	return yamltext.Rewrite(r.origin.text, &root)
}

func encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	if err := encoder.Encode(commented(node)); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return out.Bytes(), err
}

// commented is the node without the marks that say that there is no comment: in a text that is new there is none to take out.
func commented(node *yaml.Node) *yaml.Node {
	made := *node
	for _, comment := range []*string{&made.HeadComment, &made.LineComment, &made.FootComment} {
		if *comment == yamltext.NoComment {
			*comment = ""
		}
	}
	made.Content = make([]*yaml.Node, len(node.Content))
	for i, below := range node.Content {
		made.Content[i] = commented(below)
	}
	return &made
}
