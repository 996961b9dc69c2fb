package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// setLabels puts labels on objects, on the Pods that they make, and into the selectors that are to find those.
//
// Selectors of a workload's own, and of a Service that has one, get every label; everywhere else a selector is only kept in
// step: a label that it names gets the new value. Objects for tools are left alone.
func setLabels(ctx context.Context, r *run) error {
	labels, more, err := readLabels(r.config)
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(labels))
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		l := labeller{run: r, object: o, labels: labels, keys: keys}
		l.all([]string{"metadata", "labels"})
		if r.compat {
			l.catalogueKind()
		} else {
			l.kind()
		}
		for i := range more {
			l.try(r.each(o, &more[i], func(parent *yaml.Node, path []string) error { return l.write(parent, path, false) }))
		}
		if l.err != nil {
			return l.err
		}
	}
	return nil
}

// labelsConfig is the function's own kind.
type labelsConfig struct {
	head   `yaml:",inline"`
	Labels map[string]string `yaml:"labels"`
	More   []fieldSpec       `yaml:"additionalLabelFields"`
}

func readLabels(c *config) (map[string]string, []fieldSpec, error) {
	if c == nil {
		return nil, nil, errNoConfig
	}
	read := labelsConfig{Labels: c.data}
	if c.own != nil {
		if err := c.decode(&read, "SetLabels"); err != nil {
			return nil, nil, err
		}
	}
	if len(read.Labels) == 0 {
		return nil, nil, errors.New("there are no labels to set")
	}
	for _, key := range slices.Sorted(maps.Keys(read.Labels)) {
		value := read.Labels[key]
		if !isQualified(key) {
			return nil, nil, fmt.Errorf("%q is not the name of a label", key)
		}
		if !isLabelValue(value) {
			return nil, nil, fmt.Errorf("the label %s cannot have the value %q", key, value)
		}
	}
	return read.Labels, read.More, checkSpecs(read.More)
}

// checkSpecs fails for paths that say nothing.
func checkSpecs(specs []fieldSpec) error {
	for i := range specs {
		if _, err := specs[i].steps(); err != nil {
			return err
		}
	}
	return nil
}

// labeller puts labels on one object. The first error ends it.
type labeller struct {
	*run
	object *object
	labels map[string]string
	keys   []string
	err    error
}

func (l *labeller) try(err error) {
	if l.err == nil {
		l.err = err
	}
}

// write puts the labels into the map: all of them, or only those that are in it.
func (l *labeller) write(parent *yaml.Node, path []string, onlyThere bool) error {
	for _, key := range l.keys {
		if onlyThere && kpt.Lookup(parent, key) == nil {
			continue
		}
		if err := l.setText(l.object, parent, join(path, key), l.labels[key]); err != nil {
			return err
		}
	}
	return nil
}

// all writes every label at the path, which is made.
func (l *labeller) all(path []string) {
	if l.err != nil {
		return
	}
	parent, err := l.mapping(l.object, path)
	if err == nil {
		err = l.write(parent, path, false)
	}
	l.try(err)
}

// under writes the labels into the map that the path leads to from n, where it is there.
func (l *labeller) under(n *yaml.Node, path []string, onlyThere bool, keys ...string) {
	for _, key := range keys {
		n, path = kpt.Lookup(n, key), join(path, key)
	}
	if l.err != nil || isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.err = l.object.fail(path, errors.New("is no map"))
		return
	}
	l.err = l.write(n, path, onlyThere)
}
