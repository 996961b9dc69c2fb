package function

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// The list of objects that functions read and write, as the KRM functions specification has it.
const (
	listVersion = "config.kubernetes.io/v1"
	listKind    = "ResourceList"
)

// The annotations that say where an object stands. Functions of before know them without internal.
const (
	atPath      = "internal.config.kubernetes.io/path"
	atIndex     = "internal.config.kubernetes.io/index"
	atPathOld   = "config.kubernetes.io/path"
	atIndexOld  = "config.kubernetes.io/index"
	atObjectKey = "internal.config.kubernetes.io/id"
)

// resourceList is what a function is given, and where what it makes of that belongs.
type resourceList struct {
	folder string
	run    *run
}

// encode is the list that the function reads. Each object says where it stands in the package, and which one it is.
func (l *resourceList) encode() ([]byte, error) {
	items := &yaml.Node{Kind: yaml.SequenceNode, Tag: tagList}
	for i, o := range l.run.objects {
		item := yaml.CopyYNode(o.root)
		places := l.places(i)
		for _, key := range slices.Sorted(maps.Keys(places)) {
			if err := yaml.NewRNode(item).PipeE(yaml.SetAnnotation(key, places[key])); err != nil {
				return nil, o.fail([]string{"metadata", "annotations"}, err)
			}
		}
		items.Content = append(items.Content, item)
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{
		newText("apiVersion"), newText(listVersion), newText("kind"), newText(listKind), newText("items"), items,
	}}
	if config := l.run.config.asObject(); config != nil {
		root.Content = append(root.Content, newText("functionConfig"), config)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	err := errors.Join(encoder.Encode(root), encoder.Close())
	return out.Bytes(), err
}

// places are the annotations of the object of that number.
func (l *resourceList) places(i int) map[string]string {
	resource := l.run.objects[i].resource
	file := resource.File
	if l.folder != "" {
		file = strings.TrimPrefix(file, l.folder+"/")
	}
	index := strconv.Itoa(resource.Index)
	return map[string]string{atPath: file, atPathOld: file, atIndex: index, atIndexOld: index, atObjectKey: strconv.Itoa(i)}
}

// asObject is the configuration as the function's own words, nil for none.
func (c *config) asObject() *yaml.Node {
	switch {
	case c == nil:
		return nil
	case c.object != nil:
		return c.object
	}
	data := &yaml.Node{}
	_ = data.Encode(c.data) // A map of strings is always one.
	return &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{
		newText("apiVersion"), newText("v1"), newText("kind"), newText("ConfigMap"),
		newText("metadata"),
		{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{newText("name"), newText("function-input")}},
		newText("data"), data,
	}}
}

// parseOne reads a text that has one document, and that is a map in which everything stands in its place.
func parseOne(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	document := &yaml.Node{}
	switch err := decoder.Decode(document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, fmt.Errorf("it is no YAML: %.200s", err.Error())
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document")
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no map")
	}
	root := document.Content[0]
	if hasAlias(root) {
		return nil, errors.New("it has aliases")
	}
	if key := twice(root, nil); key != nil {
		return nil, fmt.Errorf("%s: is there twice", place(key))
	}
	return root, nil
}

// apply makes the package's objects those that the function wrote: the same ones changed, new ones added, and what is missing
// removed.
func (l *resourceList) apply(ctx context.Context, items []*yaml.Node) error {
	claimed := map[int]bool{}
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.put(item, claimed); err != nil {
			return fmt.Errorf("items[%d] of its output, %.60s %.100s: %w", i, kpt.Text(item, "kind"), kpt.Text(item, "metadata", "name"), err)
		}
	}
	for i, o := range l.run.objects {
		if claimed[i] {
			continue
		}
		if o.resource.IsKptfile() {
			return o.fail(nil, errors.New("a function may not remove a Kptfile"))
		}
		l.run.remove(o)
	}
	return nil
}

// put changes the object that the item is, or adds it.
func (l *resourceList) put(item *yaml.Node, claimed map[int]bool) error {
	if kpt.Text(item, "apiVersion") == "" || kpt.Text(item, "kind") == "" {
		return errors.New("it has no apiVersion or kind")
	}
	i, err := strconv.Atoi(kpt.Text(item, "metadata", "annotations", atObjectKey))
	if err != nil || i < 0 || i >= len(l.run.objects) || claimed[i] {
		return l.add(item, l.file(item, nil))
	}
	claimed[i] = true
	o := l.run.objects[i]
	file := l.file(item, l.places(i))
	restore(item, o.root)
	if err := o.keepsOrigin(item); err != nil {
		return err
	}
	if name := l.places(i)[atPath]; file != name {
		if o.resource.IsKptfile() {
			return errors.New("a function may not move a Kptfile")
		}
		l.run.remove(o)
		return l.add(item, file)
	}
	if was := o.resource.IsKptfile(); was != isKptfile(item) {
		return errors.New("a function may neither make nor remove a Kptfile")
	}
	if err := l.run.room.put(o.root, item); err != nil {
		return err
	}
	*o.root = *l.run.settle(o.root, item)
	return nil
}

// file is where the item says that it belongs. Functions of before change the annotation that they know.
func (l *resourceList) file(item *yaml.Node, was map[string]string) string {
	now, old := kpt.Text(item, "metadata", "annotations", atPath), kpt.Text(item, "metadata", "annotations", atPathOld)
	switch {
	case old != "" && (now == "" || now == was[atPath]):
		return old
	case now != "":
		return now
	}
	if was != nil {
		return was[atPath]
	}
	return strings.ToLower(kpt.Text(item, "kind")+"_"+kpt.Text(item, "metadata", "name")) + ".yaml"
}

// add adds a new object to the package's own files, or to those of the packages beneath it.
func (l *resourceList) add(item *yaml.Node, file string) error {
	restore(item, nil)
	if isKptfile(item) {
		return errors.New("a function may not make a Kptfile")
	}
	if err := checkFile(file); err != nil {
		return err
	}
	return l.run.insert(file, item)
}

func isKptfile(item *yaml.Node) bool {
	group, _, _ := strings.Cut(kpt.Text(item, "apiVersion"), "/")
	return group == "kpt.dev" && kpt.Text(item, "kind") == kpt.KptfileName
}
