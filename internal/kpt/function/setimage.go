package function

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// setImage gives an image another name, tag or digest wherever Pods, and what makes Pods, use it. Objects for tools are left
// alone.
func setImage(ctx context.Context, r *run) error {
	wanted, more, err := readImage(r.config)
	if err != nil {
		return err
	}
	s := imageSetter{run: r, wanted: wanted}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.resource.IsLocalConfig() {
			continue
		}
		if err := s.pods(o); err != nil {
			return err
		}
		for i := range more {
			if err := s.more(o, &more[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// imageConfig is the function's own kind.
type imageConfig struct {
	head  `yaml:",inline"`
	Image imageChange `yaml:"image"`
	More  []fieldSpec `yaml:"additionalImageFields"`
}

// imageChange is what becomes of images of a name. What is empty stays.
type imageChange struct {
	Name    string `yaml:"name"`
	NewName string `yaml:"newName"`
	NewTag  string `yaml:"newTag"`
	Digest  string `yaml:"digest"`
}

func readImage(c *config) (imageChange, []fieldSpec, error) {
	var read imageConfig
	switch {
	case c == nil:
		return read.Image, nil, errNoConfig
	case c.own != nil:
		if err := c.decode(&read, "SetImage"); err != nil {
			return read.Image, nil, err
		}
	default:
		if err := c.only("name", "newName", "newTag", "digest"); err != nil {
			return read.Image, nil, err
		}
		read.Image = imageChange{Name: c.data["name"], NewName: c.data["newName"], NewTag: c.data["newTag"], Digest: c.data["digest"]}
	}
	for i := range read.More {
		if read.More[i].Create {
			return read.Image, nil, errors.New("additionalImageFields: create has to be false: a field that is not there has no image to compare")
		}
	}
	if err := checkSpecs(read.More); err != nil {
		return read.Image, nil, err
	}
	return read.Image, read.More, read.Image.check()
}

// check refuses what would make no image of one.
func (c imageChange) check() error {
	called, newName := cutImage(c.Name), cutImage(c.NewName)
	switch {
	case c.Name == "":
		return errors.New("the configuration names no image")
	case called.name != c.Name:
		return fmt.Errorf("name: %q has a tag or a digest; images are found by their name alone", c.Name)
	case c.NewName == "" && c.NewTag == "" && c.Digest == "":
		return errors.New("there is nothing to set: newName, newTag or digest is needed")
	case newName.name != c.NewName:
		return fmt.Errorf("newName: %q has a tag or a digest, which newTag and digest are for", c.NewName)
	case c.NewTag != "" && !isTag(c.NewTag):
		return fmt.Errorf("newTag: %q is no tag", c.NewTag)
	case c.Digest != "" && !isDigest(c.Digest):
		return fmt.Errorf("digest: %q is no digest, such as sha256: with 64 hexadecimal digits", c.Digest)
	}
	return nil
}

// imageSetter sets one image.
type imageSetter struct {
	*run
	wanted imageChange
}

// pods looks at the Pod that the object is or makes.
func (s *imageSetter) pods(o *object) error {
	_, template := templates(o)
	path := join(template, "spec")
	switch {
	case o.is("", "Pod"):
		path = []string{"spec"}
	case o.is("", "PodTemplate"):
		path = []string{"template", "spec"}
	case template == nil:
		return nil
	}
	if s.compat {
		return s.catalogue(o, path)
	}
	spec := kpt.Lookup(o.root, path...)
	for _, list := range []struct{ name, field string }{
		{"initContainers", "image"}, {"containers", "image"}, {"ephemeralContainers", "image"},
	} {
		for i, container := range kpt.Elements(kpt.Lookup(spec, list.name)) {
			if err := s.set(o, kpt.Lookup(container, list.field), join(path, list.name, strconv.Itoa(i), list.field)); err != nil {
				return err
			}
		}
	}
	for i, volume := range kpt.Elements(kpt.Lookup(spec, "volumes")) {
		if err := s.set(o, kpt.Lookup(volume, "image", "reference"), join(path, "volumes", strconv.Itoa(i), "image", "reference")); err != nil {
			return err
		}
	}
	return nil
}

// catalogue looks where kpt's set-image does: at containers alone, and not at Jobs, nor at the Pods of a PodTemplate.
func (s *imageSetter) catalogue(o *object, path []string) error {
	if o.group() == "batch" || o.is("", "PodTemplate") || o.is("", "ReplicationController") {
		return nil
	}
	for i, container := range kpt.Elements(kpt.Lookup(o.root, join(path, "containers")...)) {
		if err := s.set(o, kpt.Lookup(container, "image"), join(path, "containers", strconv.Itoa(i), "image")); err != nil {
			return err
		}
	}
	return nil
}

// more looks at the fields that the configuration names. The last step leads to the image, or to a list of images.
func (s *imageSetter) more(o *object, spec *fieldSpec) error {
	steps, err := spec.steps()
	if err != nil || !spec.matches(o) {
		return err
	}
	last := len(steps) - 1
	for last > 0 && steps[last] == "[]" {
		last--
	}
	return s.below(o, o.root, nil, steps[:last], false, func(parent *yaml.Node, path []string) error {
		found := kpt.Lookup(parent, steps[last])
		path = join(path, steps[last])
		if isNull(found) || found.Kind != yaml.SequenceNode {
			return s.set(o, found, path)
		}
		for i, element := range found.Content {
			if err := s.set(o, element, join(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
		return nil
	})
}

// set changes the image, if it is of the name.
func (s *imageSetter) set(o *object, n *yaml.Node, path []string) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return o.fail(path, errors.New("is no image"))
	}
	found := cutImage(n.Value)
	if found.name != s.wanted.Name {
		return nil
	}
	if found.digest != "" && s.wanted.NewTag != "" && s.wanted.Digest == "" {
		s.note("%s: %s had the digest of the tag before, and has none now", o.resource.ID(), place(path))
	}
	return s.replaceText(o, n, path, found.with(s.wanted).String())
}
