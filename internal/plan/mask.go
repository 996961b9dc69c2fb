package plan

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/printable"
)

// mask replaces what is secret, before anything compares or shows it, by a mark: equal values have equal marks, and nobody can try
// what the value is, as the key is this process's own.
type mask struct {
	key [32]byte
	// values are those of Secrets, in the ways in which they are written, and names what is called by what is made of them.
	values, names []string
	// substituted are those that may be in the names of objects, which the release does not write then.
	substituted []string
}

const (
	// markPrefix begins the marks.
	markPrefix = "(hidden "
	// lastApplied has whole objects in it.
	lastApplied = corev1.LastAppliedConfigAnnotation
	// fewest is how long a value has to be to be looked for within others.
	fewest = 4
	// maxText is how long a message may be.
	maxText = 1024
)

// newMask hides the values of variables that come from Secrets, what is derived from them, and the values of the Secrets of a release.
func newMask(secrets []string, rows []engine.Row, made derived) mask {
	m := mask{names: made.names}
	_, _ = rand.Read(m.key[:]) // It never fails.
	m.values = slices.DeleteFunc(made.texts, func(text string) bool { return text == "" })
	for _, value := range secrets {
		m.add(value)
		m.substituted = append(m.substituted, strings.TrimSpace(value))
	}
	for i := range rows {
		for _, obj := range []*unstructured.Unstructured{rows[i].Object, rows[i].After} {
			if obj != nil && isSecret(obj) {
				m.addAll(obj)
			}
		}
	}
	// The longest first, so that no part of a value is left of it.
	slices.SortFunc(m.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.values = slices.Compact(m.values)
	return m
}

func (m *mask) addAll(secret *unstructured.Unstructured) {
	for _, field := range secretFields() {
		m.addIn(secret.Object[field], field == "data")
	}
}

// addIn adds what is secret within the value, whatever form that has.
func (m *mask) addIn(value any, encoded bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, one := range value {
			m.addIn(one, encoded)
		}
	case []any:
		for _, one := range value {
			m.addIn(one, encoded)
		}
	default:
		text := textOf(value)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && encoded {
			m.add(string(decoded))
		}
		m.add(text)
	}
}

// textOf is a value as people write it; "" for none.
func textOf(value any) string {
	if plain, isText := value.(string); isText || value == nil {
		return plain
	}
	return text(value, true)
}

func (m *mask) add(value string) {
	for _, one := range []string{value, strings.TrimSpace(value), base64.StdEncoding.EncodeToString([]byte(value))} {
		if one != "" {
			m.values = append(m.values, one)
		}
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= 2*fewest {
			m.values = append(m.values, line)
		}
	}
}

// secretFields are those of a Secret that hold its values.
func secretFields() []string { return []string{"data", "stringData"} }

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// object is a copy without what is secret.
func (m *mask) object(obj *unstructured.Unstructured) *unstructured.Unstructured {
	masked := obj.DeepCopy()
	for _, field := range secretFields() {
		value, there := masked.Object[field]
		if !there || !isSecret(obj) {
			continue
		}
		content, isMap := value.(map[string]any)
		if !isMap {
			masked.Object[field] = m.mark(textOf(value))
		}
		for name, one := range content {
			content[name] = m.mark(textOf(one))
		}
	}
	annotations, _, _ := unstructured.NestedFieldNoCopy(masked.Object, "metadata", "annotations")
	if fields, _ := annotations.(map[string]any); fields[lastApplied] != nil {
		fields[lastApplied] = m.mark(textOf(fields[lastApplied]))
	}
	for name, value := range masked.Object {
		masked.Object[name] = m.value(value)
	}
	return masked
}

func (m *mask) value(in any) any {
	switch in := in.(type) {
	case map[string]any:
		named := make(map[string]any, len(in))
		for name, value := range in {
			named[m.name(name)] = m.value(value)
		}
		return named
	case []any:
		for i := range in {
			in[i] = m.value(in[i])
		}
	case string:
		if !strings.HasPrefix(in, markPrefix) && m.holds(in) {
			return m.mark(in)
		}
	case int64, float64, bool:
		// A value that is substituted without quotes is no text any more.
		if raw, err := json.Marshal(in); err == nil && slices.Contains(m.values, string(raw)) {
			return m.mark(string(raw))
		}
	}
	return in
}

// holds says whether a text is, or has in it, a value that is secret.
func (m *mask) holds(text string) bool {
	return slices.ContainsFunc(m.values, func(value string) bool {
		return text == value || len(value) >= fewest && strings.Contains(text, value)
	})
}

// name hides what a field, or an entry, is called if that has a secret value in it. A short value would hide what kinds call their fields.
func (m *mask) name(name string) string { return m.without(m.values, name) }

// called hides what an object is called, or its namespace, if a value was substituted there. Values of the release's own Secrets hide none:
// they often name other objects of it.
func (m *mask) called(name string) string { return m.without(m.substituted, name) }

func (m *mask) without(values []string, name string) string {
	if slices.Contains(m.names, name) || slices.ContainsFunc(values, func(value string) bool { return len(value) >= 2*fewest && strings.Contains(name, value) }) {
		return m.mark(name)
	}
	return name
}

func (m *mask) mark(text string) string {
	sum := hmac.New(sha256.New, m.key[:])
	sum.Write([]byte(text))
	return markPrefix + hex.EncodeToString(sum.Sum(nil)[:8]) + ")"
}

// marked is the mark of a value.
func (m *mask) marked(value any) any {
	if isMark(value) {
		return value
	}
	return m.mark(text(value, true))
}

// text is a message without what is secret, and cut after that: of a value in two, one half would stay.
func (m *mask) text(message string) string {
	for _, value := range m.values {
		// Whoever quotes it escapes what is in it. A short one is looked for between its quotes alone.
		quoted := strconv.Quote(value)
		if len(value) >= fewest {
			message = strings.ReplaceAll(message, value, "(hidden)")
			quoted = quoted[1 : len(quoted)-1]
		}
		message = strings.ReplaceAll(message, quoted, "(hidden)")
	}
	return printable.Cut(message, maxText)
}

func isMark(value any) bool {
	text, _ := value.(string)
	return strings.HasPrefix(text, markPrefix)
}

// Hide gives copies of the objects of a release without the values of its Secrets.
func Hide(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return hide(objects, nil, derived{})
}

func hide(objects []*unstructured.Unstructured, secrets []string, made derived) []*unstructured.Unstructured {
	rows := make([]engine.Row, len(objects))
	for i := range objects {
		rows[i].Object = objects[i]
	}
	m := newMask(secrets, rows, made)
	hidden := make([]*unstructured.Unstructured, len(objects))
	for i := range objects {
		hidden[i] = m.object(objects[i])
	}
	return hidden
}
