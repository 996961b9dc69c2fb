package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// others is the installation with other values in the place of those of Secrets: what is built otherwise then is made of these.
func (d *desk) others() (in engine.Installation, values []string) {
	in = d.in
	in.Variables = maps.Clone(d.in.Variables)
	for name, value := range d.secrets {
		in.Variables[name] = otherThan(value)
		values = append(values, in.Variables[name])
	}
	return in, values
}

// otherThan is another value, which may stand where the one does.
func otherThan(value string) string {
	switch value {
	case "true":
		return "false"
	case "false":
		return "true"
	}
	return strings.Map(func(r rune) rune {
		next := func(first, size rune) rune { return first + (r-first+size/2)%size }
		switch {
		case r >= 'a' && r <= 'z':
			return next('a', 'z'-'a'+1)
		case r >= 'A' && r <= 'Z':
			return next('A', 'Z'-'A'+1)
		case r >= '0' && r <= '9':
			return next('0', '9'-'0'+1)
		case r > unicode.MaxASCII && unicode.IsPrint(r^1):
			return r ^ 1
		}
		return r
	}, value)
}

// told is what is wrong with a release, without the words that are others where the secrets are.
func (d *desk) told(ctx context.Context, message string) string {
	mine := newMask(d.values(), nil, derived{})
	message = mine.text(message)
	if len(d.secrets) == 0 {
		return message
	}
	in, values := d.others()
	_, err := d.engine.Render(ctx, in)
	if err == nil {
		return "what is wrong with it depends on the value of a Secret"
	}
	theirs := newMask(values, nil, derived{})
	return common(message, theirs.text(err.Error()))
}

// common is the text with one mark for all words between the first and the last that the other one has otherwise.
func common(text, other string) string {
	words, others := strings.Split(text, " "), strings.Split(other, " ")
	if slices.Equal(words, others) {
		return text
	}
	first := 0
	for first < min(len(words), len(others)) && words[first] == others[first] {
		first++
	}
	last := 0
	for last < min(len(words), len(others))-first && words[len(words)-1-last] == others[len(others)-1-last] {
		last++
	}
	return strings.Join(slices.Concat(words[:first], []string{"(hidden)"}, words[len(words)-last:]), " ")
}

// derived is what functions of substitution make of secrets, such as the first letters of one: texts, and what objects and entries are
// called.
type derived struct{ texts, names []string }

// derived builds the release once more, to tell what is made of secrets from the rest.
func (d *desk) derived(ctx context.Context, objects []*unstructured.Unstructured) (derived, error) {
	if len(d.secrets) == 0 || len(objects) == 0 {
		return derived{}, nil
	}
	in, _ := d.others()
	built, err := d.engine.Render(ctx, in)
	if err != nil {
		return derived{}, failure.Retry(modulesv1.BuildFailedReason, errors.New( // That of the build has the other values in it.
			"what is made of the values of Secrets cannot be told from the rest: with other values the release cannot be built"))
	}
	return derivedFrom(objects, built.Objects), nil
}

func derivedFrom(objects, others []*unstructured.Unstructured) derived {
	c := contrast{known: map[string]bool{}}
	there := map[cluster.Ref]*unstructured.Unstructured{}
	for _, obj := range others {
		there[refOf(obj)] = obj
	}
	for _, obj := range objects {
		same := there[refOf(obj)]
		if delete(there, refOf(obj)); same != nil {
			c.compare(obj.Object, same.Object)
			continue
		}
		c.alone = append(c.alone, obj.Object)
		c.names = append(c.names, obj.GroupVersionKind().Group, obj.GetKind(), obj.GetNamespace(), obj.GetName())
	}
	for _, obj := range there {
		each(obj.Object, c.know, c.know)
		c.know(obj.GroupVersionKind().Group)
	}
	for _, one := range c.alone {
		each(one, func(text string) { c.texts = append(c.texts, text) }, func(name string) { c.names = append(c.names, name) })
	}
	unknown := func(text string) bool { return text == "" || c.known[text] }
	return derived{append(c.differ, slices.DeleteFunc(c.texts, unknown)...), slices.DeleteFunc(c.names, unknown)}
}

func refOf(obj *unstructured.Unstructured) cluster.Ref {
	return cluster.Ref{GVK: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// contrast is what two builds differ in.
type contrast struct {
	// differ are texts in places that both have, and alone what stands where the other one has nothing.
	differ []string
	alone  []any
	// texts and names are of those alone, and known is what the other one has that the one lacks.
	texts, names []string
	known        map[string]bool
}

func (c *contrast) know(text string) { c.known[text] = true }

func (c *contrast) compare(value, other any) {
	switch value := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		for name, one := range value {
			if same, there := others[name]; there {
				c.compare(one, same)
				continue
			}
			c.names, c.alone = append(c.names, name), append(c.alone, one)
		}
		for name, one := range others {
			if _, there := value[name]; !there {
				c.know(name)
				each(one, c.know, c.know)
			}
		}
	case []any:
		others, _ := other.([]any)
		for i, one := range value {
			if i < len(others) {
				c.compare(one, others[i])
			} else {
				c.alone = append(c.alone, one)
			}
		}
	default:
		if value != other {
			c.differ = append(c.differ, textOf(value))
		}
	}
}

// each calls for each text within the value, and each name of an entry.
func each(value any, text, name func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for entry, one := range value {
			name(entry)
			each(one, text, name)
		}
	case []any:
		for _, one := range value {
			each(one, text, name)
		}
	default:
		text(textOf(value))
	}
}
