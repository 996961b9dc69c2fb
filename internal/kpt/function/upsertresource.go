package function

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// targetPath names the file that an object is added to.
const targetPath = "config.kubernetes.io/target-path"

// upsertResource puts the objects of its configuration into the package: in the place of those that are there, or beside them.
// An object that is there keeps its file, its comments, and what it was called upstream.
func upsertResource(ctx context.Context, r *run) error {
	if r.config == nil || r.config.from == nil {
		return errors.New("there is nothing to put into the package: the entry needs a configPath, whose file has the object")
	}
	wanted, err := wantedObjects(r.config.from)
	if err != nil {
		return err
	}
	u := &upserter{run: r, there: map[kpt.ID][]*object{}, free: map[*object]bool{}}
	for _, o := range r.objects {
		u.free[o] = true
	}
	for _, o := range r.seen {
		if o != r.config.from {
			u.there[o.resource.ID()] = append(u.there[o.resource.ID()], o)
		}
	}
	for _, one := range wanted {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.upsert(one); err != nil {
			return err
		}
	}
	return nil
}

// wantedObject is an object to put into the package.
type wantedObject struct {
	root *yaml.Node
	id   kpt.ID
	file string
}

// wantedObjects are the object of the configuration, or the items of a List.
//
// The file of the configuration is one of the package: what is in it goes to the cluster, unless it is marked as for tools. The
// same object would then be there twice.
func wantedObjects(from *object) ([]wantedObject, error) {
	roots, paths := []*yaml.Node{from.root}, [][]string{nil}
	if from.is("", "List") {
		roots, paths = kpt.Elements(kpt.Lookup(from.root, "items")), nil
		for i := range roots {
			paths = append(paths, []string{"items", strconv.Itoa(i)})
		}
	}
	if !from.resource.IsLocalConfig() {
		return nil, from.fail([]string{"metadata", "annotations", kpt.LocalConfigAnnotation},
			errors.New(`has to be "true": the configuration would be in the cluster as well`))
	}
	if len(roots) == 0 {
		return nil, from.fail([]string{"items"}, errors.New("has no objects"))
	}
	wanted, known := []wantedObject{}, map[kpt.ID]bool{}
	for i, root := range roots {
		one, err := wantedOf(root)
		if err == nil && known[one.id] {
			err = fmt.Errorf("%s is there twice", one.id)
		}
		if err != nil {
			return nil, from.fail(paths[i], err)
		}
		known[one.id] = true
		wanted = append(wanted, one)
	}
	return wanted, nil
}

// wantedOf is the object without what is meant for this function.
func wantedOf(from *yaml.Node) (wantedObject, error) {
	root := yaml.CopyYNode(from)
	root.HeadComment, root.FootComment = "", ""
	resource := &kpt.Resource{Node: yaml.NewRNode(root)}
	one := wantedObject{root: root, id: resource.ID(), file: resource.Annotation(targetPath)}
	switch {
	case root.Kind != yaml.MappingNode || one.id.Kind == "" || one.id.Name == "" || kpt.Text(root, "apiVersion") == "":
		return one, errors.New("is no object: it needs an apiVersion, a kind and a name")
	case resource.IsKptfile():
		return one, errors.New("is a Kptfile, which no function may put into a package")
	case one.file == "":
		one.file = strings.ToLower(one.id.Kind) + "_" + strings.ReplaceAll(one.id.Name, ":", "_") + ".yaml"
	}
	removeKey(kpt.Lookup(root, "metadata", "annotations"), targetPath, kpt.LocalConfigAnnotation)
	if annotations := kpt.Lookup(root, "metadata", "annotations"); annotations != nil && len(annotations.Content) == 0 {
		removeKey(kpt.Lookup(root, "metadata"), "annotations")
	}
	return one, checkFile(one.file)
}

// upserter puts objects into the package of a run.
type upserter struct {
	*run
	// there are the objects that are seen, and free those that may be changed.
	there map[kpt.ID][]*object
	free  map[*object]bool
}

func (u *upserter) upsert(wanted wantedObject) error {
	found := u.there[wanted.id]
	if len(found) == 0 {
		return u.insert(wanted.file, wanted.root)
	}
	for _, o := range found {
		if !u.free[o] {
			u.note("%s in %s stays as it is: the selectors leave it out", wanted.id, o.resource.File)
			continue
		}
		root := yaml.CopyYNode(wanted.root)
		if identifier := o.resource.Annotation(upstreamIdentifier); identifier != "" {
			metadata := kpt.Lookup(root, "metadata")
			annotations := kpt.Lookup(metadata, "annotations")
			if annotations == nil {
				annotations = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
				metadata.Content = append(metadata.Content, newText("annotations"), annotations)
			}
			removeKey(annotations, upstreamIdentifier)
			annotations.Content = append(annotations.Content, newText(upstreamIdentifier), newText(identifier))
		}
		if sameValue(o.root, root) {
			continue
		}
		if err := u.room.put(o.root, root); err != nil {
			return o.fail(nil, err)
		}
		overwrite(o.root, root)
		u.changed++
	}
	return nil
}
