package function

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// applyReplacements copies values from one object to fields of others, in the order in which it is told to.
func applyReplacements(ctx context.Context, r *run) error {
	replacements, err := readReplacements(r.config)
	if err != nil {
		return err
	}
	for i := range replacements {
		if err := r.replace(ctx, &replacements[i]); err != nil {
			if known, ok := errors.AsType[*Error](err); ok && known.Resource != "" {
				return err
			}
			return &Error{Field: fmt.Sprintf("replacements[%d]", i), Err: err}
		}
	}
	return nil
}

// replacementsConfig is the function's own kind. There is no ConfigMap for it.
type replacementsConfig struct {
	head         `yaml:",inline"`
	Replacements []replacement `yaml:"replacements"`
}

// replacement is one value and where it goes.
type replacement struct {
	Source      *source             `yaml:"source"`
	SourceValue *string             `yaml:"sourceValue"`
	Targets     []replacementTarget `yaml:"targets"`
}

// source is a field of the one object that has all that is said of it.
type source struct {
	Group     string       `yaml:"group"`
	Version   string       `yaml:"version"`
	Kind      string       `yaml:"kind"`
	Name      string       `yaml:"name"`
	Namespace string       `yaml:"namespace"`
	FieldPath string       `yaml:"fieldPath"`
	Options   fieldOptions `yaml:"options"`

	path fieldPath
}

// replacementTarget are fields of the objects that are selected and not rejected.
type replacementTarget struct {
	Select     *targetSelector  `yaml:"select"`
	Reject     []targetSelector `yaml:"reject"`
	FieldPaths []string         `yaml:"fieldPaths"`
	Options    fieldOptions     `yaml:"options"`

	paths []fieldPath
}

// fieldOptions say which part of a value is meant, and whether a field that is not there is made.
type fieldOptions struct {
	Delimiter string `yaml:"delimiter"`
	Index     int    `yaml:"index"`
	Encoding  string `yaml:"encoding"`
	Create    bool   `yaml:"create"`
}

// defaultPath is the field that is meant where none is named.
const defaultPath = "metadata.name"

func readReplacements(c *config) ([]replacement, error) {
	if c == nil {
		return nil, errNoConfig
	}
	if c.own == nil {
		return nil, fmt.Errorf("the configuration has to be of kind ApplyReplacements in %s: a ConfigMap cannot hold replacements", apiVersion)
	}
	var read replacementsConfig
	if err := c.decode(&read, "ApplyReplacements"); err != nil {
		return nil, err
	}
	for i := range read.Replacements {
		if err := read.Replacements[i].check(); err != nil {
			return nil, &Error{Field: fmt.Sprintf("replacements[%d]", i), Err: err}
		}
	}
	return read.Replacements, nil
}

// check reads paths and selectors.
func (r *replacement) check() (err error) {
	switch {
	case r.Source == nil && r.SourceValue == nil, r.Source != nil && r.SourceValue != nil:
		return errors.New("it takes a source or a sourceValue, one of the two")
	case len(r.Targets) == 0:
		return errors.New("there are no targets")
	}
	if r.Source != nil {
		if err := r.Source.Options.check(); err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if r.Source.path, err = parsePath(cmp.Or(r.Source.FieldPath, defaultPath)); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	for i := range r.Targets {
		if err := r.Targets[i].check(); err != nil {
			return fmt.Errorf("targets[%d]: %w", i, err)
		}
	}
	return nil
}

func (o fieldOptions) check() error {
	if o.Encoding != "" && !strings.EqualFold(o.Encoding, "none") {
		return fmt.Errorf("there is no encoding %q", o.Encoding)
	}
	return nil
}

func (t *replacementTarget) check() error {
	if t.Select == nil {
		return errors.New("it selects nothing")
	}
	if err := t.Options.check(); err != nil {
		return err
	}
	if err := t.Select.check(); err != nil {
		return fmt.Errorf("select: %w", err)
	}
	for i := range t.Reject {
		if err := t.Reject[i].check(); err != nil {
			return fmt.Errorf("reject[%d]: %w", i, err)
		}
	}
	if len(t.FieldPaths) == 0 {
		t.FieldPaths = []string{defaultPath}
	}
	for _, one := range t.FieldPaths {
		path, err := parsePath(one)
		if err != nil {
			return err
		}
		t.paths = append(t.paths, path)
	}
	return nil
}

// replace does one replacement.
func (r *run) replace(ctx context.Context, replacement *replacement) error {
	value, err := r.value(replacement)
	if err != nil {
		return err
	}
	for i := range replacement.Targets {
		target := &replacement.Targets[i]
		for _, o := range r.objects {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !target.selects(o) {
				continue
			}
			for j, path := range target.paths {
				if err := r.write(o, path, target.FieldPaths[j], target.Options, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// write puts the value into the fields that the path leads to. One that leads nowhere is a mistake.
func (r *run) write(o *object, path fieldPath, written string, options fieldOptions, value *yaml.Node) error {
	if path.replaced(o, value) {
		return nil
	}
	found, err := path.find(r, o, options.Create, value.Kind)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return o.failAt(written, errors.New("there is no such field, and options.create does not say to make it"))
	}
	for _, at := range found {
		if err := r.put(o, at, options, value); err != nil {
			return err
		}
	}
	return nil
}

// value is what is to be copied. Nobody else has it.
func (r *run) value(replacement *replacement) (*yaml.Node, error) {
	if replacement.SourceValue != nil {
		return newText(*replacement.SourceValue), nil
	}
	s := replacement.Source
	var from *object
	for _, o := range r.objects {
		if !s.is(o) {
			continue
		}
		if from != nil {
			return nil, fmt.Errorf("source: several objects are meant, among them %s and %s", from.resource.ID(), o.resource.ID())
		}
		from = o
	}
	if from == nil {
		return nil, errors.New("source: no object of the package is meant")
	}
	found, err := s.path.find(r, from, false, 0)
	if err != nil {
		return nil, err
	}
	written := cmp.Or(s.FieldPath, defaultPath)
	switch {
	case len(found) == 0 || isNull(found[0].node):
		return nil, from.failAt(written, errors.New("there is no such field"))
	case len(found) > 1:
		return nil, from.failAt(written, errors.New("is several values; a source is one"))
	}
	value := copyNode(found[0].node)
	if s.Options.Delimiter == "" {
		return value, nil
	}
	if value.Kind != yaml.ScalarNode {
		return nil, from.failAt(written, errors.New("is no text that a delimiter could part"))
	}
	parts := strings.Split(value.Value, s.Options.Delimiter)
	if s.Options.Index < 0 || s.Options.Index >= len(parts) {
		return nil, from.failAt(written, fmt.Errorf("has no part %d", s.Options.Index))
	}
	value.Value = parts[s.Options.Index]
	value.Tag = tagString
	return value, nil
}
