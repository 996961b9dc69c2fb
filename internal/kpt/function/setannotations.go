package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// setAnnotations puts annotations on objects and on the Pods that they make. Objects for tools get them as well, but no
// Kptfile: its annotations say what the package is.
func setAnnotations(ctx context.Context, r *run) error {
	annotations, more, err := readAnnotations(r.config)
	if err != nil {
		return err
	}
	a := annotator{run: r, annotations: annotations, keys: slices.Sorted(maps.Keys(annotations)), more: more}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsKptfile() {
			continue
		}
		if err := a.annotate(o); err != nil {
			return err
		}
	}
	return nil
}

// annotator annotates objects.
type annotator struct {
	*run
	annotations map[string]string
	keys        []string
	more        []fieldSpec
}

func (a *annotator) annotate(o *object) error {
	write := func(parent *yaml.Node, path []string) error {
		for _, key := range a.keys {
			if err := a.setText(o, parent, join(path, key), a.annotations[key]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, path := range annotated(o) {
		parent, err := a.mapping(o, path)
		if err != nil {
			return err
		}
		if err := write(parent, path); err != nil {
			return err
		}
	}
	for i := range a.more {
		if err := a.each(o, &a.more[i], write); err != nil {
			return err
		}
	}
	return nil
}

// annotated are the maps of annotations that the object has, or is to have.
func annotated(o *object) [][]string {
	paths := [][]string{{"metadata", "annotations"}}
	job, pod := templates(o)
	for _, template := range [][]string{job, pod} {
		if template != nil {
			paths = append(paths, join(template, "metadata", "annotations"))
		}
	}
	return paths
}

// annotationsConfig is the function's own kind.
type annotationsConfig struct {
	head        `yaml:",inline"`
	Annotations map[string]string `yaml:"annotations"`
	More        []fieldSpec       `yaml:"additionalAnnotationFields"`
	// Specs is what More was called in the kind before.
	Specs []fieldSpec `yaml:"fieldSpecs"`
}

func readAnnotations(c *config) (map[string]string, []fieldSpec, error) {
	if c == nil {
		return nil, nil, errNoConfig
	}
	read := annotationsConfig{Annotations: c.data}
	if c.own != nil {
		if err := c.decode(&read, "SetAnnotations", "SetAnnotationConfig"); err != nil {
			return nil, nil, err
		}
	}
	if len(read.Annotations) == 0 {
		return nil, nil, errors.New("there are no annotations to set")
	}
	for _, key := range slices.Sorted(maps.Keys(read.Annotations)) {
		if !isQualified(key) {
			return nil, nil, fmt.Errorf("%q is not the name of an annotation", key)
		}
	}
	more := append(read.More, read.Specs...)
	return read.Annotations, more, checkSpecs(more)
}
