package kpt

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// mergeComment stands behind "metadata:" and says what an object is called where the package comes from, namespace/name.
const mergeComment = "kpt-merge:"

// Origin is what the object is known by where its package comes from: the ID, with the namespace and name that the comment
// kpt-merge has, if there is one.
func (r *Resource) Origin() ID {
	id := r.ID()
	if namespace, name, found := r.noted(); found {
		id.Namespace, id.Name = namespace, name
	}
	return id
}

// noted reads the comment, which stands behind "metadata:", or behind what follows in braces.
func (r *Resource) noted() (namespace, name string, found bool) {
	i := keyIndex(r.Node.YNode(), "metadata")
	if i < 0 {
		return "", "", false
	}
	for _, node := range r.Node.YNode().Content[i : i+2] {
		_, text, marked := strings.Cut(node.LineComment, mergeComment)
		if words := strings.Fields(text); marked && len(words) > 0 {
			return strings.Cut(words[0], "/")
		}
	}
	return "", "", false
}

// KeepOrigins notes of every object that is called differently now what it was called before, so that a merge finds it again.
// The other resources are those before the change. What is noted already stays.
func (r *Resources) KeepOrigins(before *Resources) {
	files := map[string][2][]*Resource{}
	for side, resources := range []*Resources{before, r} {
		for _, item := range resources.Items {
			pair := files[item.File]
			pair[side] = append(pair[side], item)
			files[item.File] = pair
		}
	}
	for _, pair := range files {
		for now, was := range counterparts(pair[0], pair[1]) {
			if id := was.ID(); id != now.ID() && !now.IsKptfile() {
				now.noteOrigin(id)
			}
		}
	}
}

// counterparts finds for the objects of a file what they were before: the one of the same ID, or else of the same kind and
// name, or else of the same kind. Where several are alike, and as many were before, their order tells.
func counterparts(before, after []*Resource) map[*Resource]*Resource {
	found, taken := map[*Resource]*Resource{}, map[*Resource]bool{}
	for _, key := range []func(ID) ID{
		func(id ID) ID { return id },
		func(id ID) ID { return ID{Group: id.Group, Kind: id.Kind, Name: id.Name} },
		func(id ID) ID { return ID{Group: id.Group, Kind: id.Kind} },
	} {
		was, now := map[ID][]*Resource{}, map[ID][]*Resource{}
		for _, item := range before {
			if id := key(item.ID()); !taken[item] {
				was[id] = append(was[id], item)
			}
		}
		for _, item := range after {
			if id := key(item.ID()); found[item] == nil {
				now[id] = append(now[id], item)
			}
		}
		for id, items := range now {
			if len(items) != len(was[id]) {
				continue
			}
			for i, item := range items {
				found[item], taken[was[id][i]] = was[id][i], true
			}
		}
	}
	return found
}

// noteOrigin writes down what the object is called where it comes from. A comment that stands there moves above.
func (r *Resource) noteOrigin(id ID) {
	root := r.Node.YNode()
	i := keyIndex(root, "metadata")
	if _, _, found := r.noted(); found || i < 0 {
		return
	}
	key, value := root.Content[i], root.Content[i+1]
	for _, comment := range []*string{&key.LineComment, &value.LineComment} {
		if *comment != "" {
			key.HeadComment = strings.TrimPrefix(key.HeadComment+"\n"+*comment, "\n")
			*comment = ""
		}
	}
	beside := key
	if value.Style&yaml.FlowStyle != 0 {
		beside = value
	}
	beside.LineComment = "# " + mergeComment + " " + id.Namespace + "/" + id.Name
}
