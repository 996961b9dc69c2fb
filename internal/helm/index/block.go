package index

import (
	"bytes"
	"slices"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// maxKeys is how many keys a mapping may have for the quick reader.
const maxKeys = 100

// reader reads one version in the style that Helm, and most who make indexes, write: block style, plain keys, no anchors,
// no tags. It gives up with errUnusual where it is not sure to read what the YAML library would.
type reader struct {
	text []byte // ends with a line break
	pos  int
}

// readBlock reads one item of a list of versions, whose dash stands at the indentation.
func readBlock(text []byte, indent int) (*Version, error) {
	if !usual(text) || len(text) < indent+3 || text[indent] != '-' || text[indent+1] != ' ' || text[len(text)-1] != '\n' {
		return nil, errUnusual
	}
	if len(bytes.TrimLeft(text[:indent], " ")) > 0 {
		return nil, errUnusual
	}
	r := &reader{text: text, pos: indent + 2}
	v := &Version{Metadata: &chart.Metadata{}}
	err := r.mapping(indent+2, func(key string, in int) error { return r.versionField(v, key, in) })
	if err == nil && r.pos < len(text) {
		return nil, errUnusual
	}
	return v, err
}

// line returns the rest of the line and goes on behind its end.
func (r *reader) line() []byte {
	rest := r.text[r.pos:]
	end := bytes.IndexByte(rest, '\n')
	r.pos += end + 1
	return rest[:end]
}

// indent is how many spaces the cursor stands before.
func (r *reader) indent() int {
	n := r.pos
	for n < len(r.text) && r.text[n] == ' ' {
		n++
	}
	return n - r.pos
}

// skipEmpty passes over lines with nothing on them but a comment. Inside of a mapping these say nothing.
func (r *reader) skipEmpty() {
	for r.pos < len(r.text) {
		if at := r.pos + r.indent(); r.text[at] != '\n' && r.text[at] != '#' {
			return
		}
		r.line()
	}
}

// mapping reads the keys that stand at the indentation; the cursor is at the first of them, behind the indentation. Field
// reads a value, whose mapping is indented as it is told.
func (r *reader) mapping(in int, field func(key string, in int) error) error {
	var few [16]string
	seen := few[:0] // A mapping has few keys, and a list of them is faster than a map.
	for {
		key, err := r.key()
		if err != nil {
			return err
		}
		if len(seen) == maxKeys || slices.Contains(seen, key) {
			return errUnusual
		}
		seen = append(seen, key)
		if err := field(key, in); err != nil {
			return err
		}
		r.skipEmpty()
		if r.pos >= len(r.text) || r.indent() < in {
			return nil
		}
		if r.indent() > in {
			return errUnusual
		}
		if r.text[r.pos+in] == '-' {
			return errUnusual
		}
		r.pos += in
	}
}

// key reads a plain key with its colon, and the spaces behind it.
func (r *reader) key() (string, error) {
	begin := r.pos
	for r.pos < len(r.text) && isKey(r.text[r.pos]) {
		r.pos++
	}
	key := r.text[begin:r.pos]
	if r.pos+1 >= len(r.text) || r.text[r.pos] != ':' || r.text[r.pos+1] != ' ' && r.text[r.pos+1] != '\n' || !isString(key) {
		return "", errUnusual
	}
	r.pos++
	r.pos += r.indent()
	return string(key), nil
}

func isKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == '/'
}

// value reads a value that is a string. A key without one has none, as null.
func (r *reader) value(into *string, in int) error {
	text, err := r.scalar(in)
	*into = string(text)
	return err
}

// scalar reads a value that is certainly a string, or nothing.
func (r *reader) scalar(parent int) ([]byte, error) {
	switch r.text[r.pos] {
	case '\n':
		r.line()
		r.skipEmpty()
		if r.pos < len(r.text) && (r.indent() > parent || r.isItem(parent)) {
			return nil, errUnusual
		}
		return nil, nil
	case '"', '\'':
		return r.quoted()
	case '|':
		return r.literal(parent)
	}
	text, err := r.plain(parent)
	if err == nil && !isString(text) {
		err = errUnusual
	}
	return text, err
}

// isItem tells whether the cursor stands before an item of a list at the indentation.
func (r *reader) isItem(in int) bool {
	return r.indent() == in && r.pos+in < len(r.text) && r.text[r.pos+in] == '-'
}

func (r *reader) flag(into *bool) error {
	switch string(r.line()) {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		return errUnusual
	}
	r.skipEmpty()
	return nil
}

func (r *reader) time(into *time.Time, in int) error {
	text, err := r.scalar(in)
	if err != nil || text == nil {
		return err
	}
	if into.UnmarshalText(text) != nil {
		return errUnusual
	}
	return nil
}

// list reads the items of a list below a key at the indentation.
func (r *reader) list(parent int, item func(in int) error) error {
	if string(r.text[r.pos:min(r.pos+3, len(r.text))]) == "[]\n" {
		r.line()
		return nil
	}
	if r.text[r.pos] != '\n' {
		return errUnusual
	}
	r.line()
	r.skipEmpty()
	in := r.indent()
	if r.pos >= len(r.text) || in < parent || !r.isItem(in) {
		return errUnusual
	}
	for r.isItem(in) {
		if r.pos+in+2 >= len(r.text) || r.text[r.pos+in+1] != ' ' {
			return errUnusual
		}
		r.pos += in + 2
		if err := item(in); err != nil {
			return err
		}
		r.skipEmpty()
	}
	if r.pos < len(r.text) && r.indent() > parent {
		return errUnusual
	}
	return nil
}

func (r *reader) texts(into *[]string, in int) error {
	*into = []string{}
	return r.list(in, func(in int) error {
		var one string
		if r.text[r.pos] == '\n' || r.text[r.pos] == ' ' {
			return errUnusual
		}
		err := r.value(&one, in)
		*into = append(*into, one)
		return err
	})
}

// pairs reads a mapping of strings.
func (r *reader) pairs(into *map[string]string, parent int) error {
	*into = map[string]string{}
	if string(r.text[r.pos:min(r.pos+3, len(r.text))]) == "{}\n" {
		r.line()
		return nil
	}
	return r.nested(parent, func(key string, in int) error {
		var one string
		err := r.value(&one, in)
		(*into)[key] = one
		return err
	})
}

// nested reads a mapping below a key.
func (r *reader) nested(parent int, field func(key string, in int) error) error {
	if r.text[r.pos] != '\n' {
		return errUnusual
	}
	r.line()
	r.skipEmpty()
	in := r.indent()
	if r.pos >= len(r.text) || in <= parent {
		return errUnusual
	}
	r.pos += in
	return r.mapping(in, field)
}

// objects reads a list of mappings.
func objects[T any](r *reader, into *[]*T, parent int, field func(one *T, key string, in int) error) error {
	*into = []*T{}
	return r.list(parent, func(in int) error {
		one := new(T)
		*into = append(*into, one)
		return r.mapping(in+2, func(key string, in int) error { return field(one, key, in) })
	})
}
