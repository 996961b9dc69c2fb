package function

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/labels"
)

// is tells whether the object has all that the source says. An object without a namespace is in the default one.
func (s *source) is(o *object) bool {
	group, version := o.resource.GroupVersion()
	return (s.Group == "" || s.Group == group) && (s.Version == "" || s.Version == version) &&
		(s.Kind == "" || s.Kind == o.kind()) && (s.Name == "" || s.Name == o.name()) &&
		(s.Namespace == "" || s.Namespace == o.current() || s.Namespace == defaultNamespace && o.current() == "")
}

// targetSelector selects objects: all of its expressions match the whole of what they speak of, and what is empty matches
// everything.
type targetSelector struct {
	Group              string `yaml:"group"`
	Version            string `yaml:"version"`
	Kind               string `yaml:"kind"`
	Name               string `yaml:"name"`
	Namespace          string `yaml:"namespace"`
	LabelSelector      string `yaml:"labelSelector"`
	AnnotationSelector string `yaml:"annotationSelector"`

	group, version, kind, name, namespace *regexp.Regexp
	labels, annotations                   labels.Selector
}

// check compiles the expressions. They take time that is linear in what they are matched with.
func (s *targetSelector) check() (err error) {
	for _, one := range []struct {
		expression string
		into       **regexp.Regexp
	}{{s.Group, &s.group}, {s.Version, &s.version}, {s.Kind, &s.kind}, {s.Name, &s.name}, {s.Namespace, &s.namespace}} {
		if one.expression == "" {
			continue
		}
		if *one.into, err = regexp.Compile("^(?:" + one.expression + ")$"); err != nil {
			return fmt.Errorf("the expression %q: %w", one.expression, err)
		}
	}
	if s.labels, err = labels.Parse(s.LabelSelector); err != nil {
		return fmt.Errorf("labelSelector: %w", err)
	}
	if s.annotations, err = labels.Parse(s.AnnotationSelector); err != nil {
		return fmt.Errorf("annotationSelector: %w", err)
	}
	return nil
}

// matches tells whether all of the selector is true of the object.
func (s *targetSelector) matches(o *object) bool {
	group, version := o.resource.GroupVersion()
	namespace := o.current()
	whole := func(expression *regexp.Regexp, value string) bool {
		return expression == nil || expression.MatchString(value)
	}
	return whole(s.group, group) && whole(s.version, version) && whole(s.kind, o.kind()) && whole(s.name, o.name()) &&
		(whole(s.namespace, namespace) || namespace == "" && whole(s.namespace, defaultNamespace)) &&
		s.labels.Matches(labels.Set(texts(o.root, "metadata", "labels"))) &&
		s.annotations.Matches(labels.Set(texts(o.root, "metadata", "annotations")))
}

// isEmpty tells whether nothing is said.
func (s *targetSelector) isEmpty() bool {
	return s.Group+s.Version+s.Kind+s.Name+s.Namespace+s.LabelSelector+s.AnnotationSelector == ""
}

// selects tells whether the object is meant. A rejection that says nothing rejects nothing.
func (t *replacementTarget) selects(o *object) bool {
	if !t.Select.matches(o) {
		return false
	}
	for i := range t.Reject {
		if !t.Reject[i].isEmpty() && t.Reject[i].matches(o) {
			return false
		}
	}
	return true
}
