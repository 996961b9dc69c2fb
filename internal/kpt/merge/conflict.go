package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// Conflict is a place that both sides changed, and not to the same. The values are what stood there, each on one line and at
// most 256 bytes; what is missing is "", and an empty text is `""`. No value of a Secret is shown, and no content of a file that
// holds no objects: its digest is.
type Conflict struct {
	// File is where the place is now, and Resource which object it is in, as kpt.ID writes it; "" for what is in none.
	File, Resource string
	// Path is that of the field, such as "spec.containers[name=web].image"; "" for the object or the file itself.
	Path string
	// Base, Upstream and Local are what stood there before, what upstream makes of it, and what people made of it.
	Base, Upstream, Local string
}

// String says where the conflict is.
func (c Conflict) String() string {
	words := []string{}
	for _, word := range []string{c.File, c.Resource, c.Path} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

const (
	maxValue = 256
	maxPath  = 512
	maxKey   = 128
	// hidden stands for values of Secrets.
	hidden = "(hidden)"
)

// place is where in an object the merge stands.
type place struct {
	above *place
	// step is what leads here from above: ".name", "[name=web]", "[2]".
	step string
	// known is the shape of what is here.
	known *shape
	// secret is that what is here is not to be shown.
	secret bool
	// upstreams is that people have no say here.
	upstreams bool
}

// below is the place that a step leads to.
func (p *place) below(step string, known *shape) *place {
	return &place{
		above: p, step: step, known: known, secret: p.secret, upstreams: p.upstreams || known != nil && known.upstreams,
	}
}

// field is the place of a value in a map.
func (p *place) field(key *yaml.Node) *place {
	if key.Kind != yaml.ScalarNode {
		return p.below("[?]", nil)
	}
	known, name := p.known.field(key.Value), printable.Cut(key.Value, maxKey)
	if name == "" || strings.ContainsAny(name, ".[]=\"\\ \n\t") {
		return p.below(fmt.Sprintf("[%q]", name), known)
	}
	return p.below("."+name, known)
}

// String is the path, from the object on.
func (p *place) String() string {
	steps := []string{}
	for at := p; at != nil; at = at.above {
		steps = append(steps, at.step)
	}
	var path strings.Builder
	for _, step := range slices.Backward(steps) {
		path.WriteString(step)
	}
	return printable.Line(strings.TrimPrefix(path.String(), "."), maxPath)
}

// show is a value on one line.
func show(node *yaml.Node, secret bool) string {
	switch {
	case node == nil:
		return ""
	case secret:
		return hidden
	case node.Kind == yaml.ScalarNode && node.Value == "" && !isNull(node):
		return `""`
	}
	line := writer{}
	line.write(node)
	return printable.Line(line.String(), maxValue)
}

// writer writes a value as YAML's flow style does, about as much of it as is shown.
type writer struct{ strings.Builder }

func (w *writer) write(node *yaml.Node) {
	if w.Len() > maxValue {
		return
	}
	switch node.Kind {
	case yaml.MappingNode:
		w.writeMap(node)
	case yaml.SequenceNode:
		_ = w.WriteByte('[')
		for i, child := range node.Content {
			if i > 0 {
				_, _ = w.WriteString(", ")
			}
			w.write(child)
			if w.Len() > maxValue {
				break
			}
		}
		_ = w.WriteByte(']')
	default:
		_, _ = w.WriteString(printable.Cut(node.Value, 2*maxValue))
	}
}

func (w *writer) writeMap(node *yaml.Node) {
	secret := isSecret(node)
	_ = w.WriteByte('{') // A builder takes everything, here and below.
	for i := 0; i+1 < len(node.Content) && w.Len() <= maxValue; i += 2 {
		if i > 0 {
			_, _ = w.WriteString(", ")
		}
		w.write(node.Content[i])
		_, _ = w.WriteString(": ")
		if secret && !isShown(node.Content[i].Value) {
			_, _ = w.WriteString(hidden)
			continue
		}
		w.write(node.Content[i+1])
	}
	_ = w.WriteByte('}')
}

// isSecret tells whether the map is a Secret, by itself or in a list of objects.
func isSecret(node *yaml.Node) bool { return kpt.Text(node, "kind") == "Secret" }

// isShown tells whether the field of a Secret may be shown. Annotations may not: tools keep copies of the object in them.
func isShown(field string) bool {
	return field == "apiVersion" || field == "kind" || field == "type" || field == "immutable"
}

// conflict keeps the conflict.
func (m *merger) conflict(at *place, base, theirs, local *yaml.Node) {
	if at.upstreams {
		return
	}
	m.conflicts++
	m.report(Conflict{
		Path: at.String(), Base: show(base, at.secret), Upstream: show(theirs, at.secret), Local: show(local, at.secret),
	})
}

// showFile is a file without what is in it.
func showFile(file kpt.File) string {
	if file.Mode.Type() == fs.ModeSymlink {
		return printable.Line("link to "+string(file.Content), maxValue)
	}
	digest := sha256.Sum256(file.Content)
	return fmt.Sprintf("%o sha256:%s, %d bytes", file.Mode.Perm(), hex.EncodeToString(digest[:8]), len(file.Content))
}
