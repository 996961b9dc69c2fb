package function

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

const (
	// upstreamIdentifier is where kpt keeps what an object was called upstream: group|kind|namespace|name.
	upstreamIdentifier = "internal.kpt.dev/upstream-identifier"
	// dependsOn lists the objects that are to be there before this one.
	dependsOn = "config.kubernetes.io/depends-on"
)

// object is a resource as functions see it: without aliases.
type object struct {
	resource *kpt.Resource
	// root is the map that functions change.
	root *yaml.Node
	// namespace is the one that the object had before rendering began.
	namespace string
}

func (o *object) group() string {
	group, _ := o.resource.GroupVersion()
	return group
}

func (o *object) kind() string { return kpt.Text(o.root, "kind") }

func (o *object) name() string { return kpt.Text(o.root, "metadata", "name") }

// is tells whether the object is of the kind, in any version.
func (o *object) is(group, kind string) bool { return o.group() == group && o.kind() == kind }

// current is the namespace that the object has now.
func (o *object) current() string { return kpt.Text(o.root, "metadata", "namespace") }

// upstream is the namespace, or for a Namespace the name, that the object had upstream.
func (o *object) upstream() (namespace, name string) {
	parts := strings.Split(o.resource.Annotation(upstreamIdentifier), "|")
	if len(parts) != 4 {
		return "", ""
	}
	return parts[2], parts[3]
}

// fail names the object and the field where something is wrong.
func (o *object) fail(path []string, err error) error { return o.failAt(place(path), err) }

// failAt is fail for a field as it was written by whoever named it.
func (o *object) failAt(field string, err error) error {
	return &Error{Resource: o.resource.ID().String(), File: o.resource.File, Field: field, Err: err}
}

// texts are the strings in the map at the path.
func texts(n *yaml.Node, path ...string) map[string]string {
	found := map[string]string{}
	if n = kpt.Lookup(n, path...); n == nil || n.Kind != yaml.MappingNode {
		return found
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i+1].Kind == yaml.ScalarNode {
			found[n.Content[i].Value] = n.Content[i+1].Value
		}
	}
	return found
}
