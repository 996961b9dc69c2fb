package kpt

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// LocalConfigAnnotation marks an object that is for tools and not for the cluster.
const LocalConfigAnnotation = "config.kubernetes.io/local-config"

// Resource is one object of a package.
type Resource struct {
	// File is the path of the file it is in, below the package's root. Who changes it moves the resource.
	File string
	// Index counts the documents of the file as they were read, from 0.
	Index int
	// Node is what it says, a map; it may be changed and replaced.
	Node *yaml.RNode
	// Document has the comments above and below the object that blank lines part from it; nil where it was added.
	Document *yaml.Node

	// origin is the document that it was read from, nil for one that was added.
	origin *document
	// folder is that of the package that it belongs to.
	folder string
}

// ID is what an object is known by. Versions differ for the same object.
type ID struct {
	Group, Kind, Namespace, Name string
}

// String is "Deployment.apps default/web", without what is empty.
func (i ID) String() string {
	kind, name := i.Kind, i.Name
	if i.Group != "" {
		kind += "." + i.Group
	}
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return kind + " " + name
}

// ID is read from the node as it is now.
func (r *Resource) ID() ID {
	group, _ := r.GroupVersion()
	return ID{
		Group: group, Kind: r.Kind(),
		Namespace: Text(r.Node.YNode(), "metadata", "namespace"), Name: Text(r.Node.YNode(), "metadata", "name"),
	}
}

// Kind is the kind alone.
func (r *Resource) Kind() string { return Text(r.Node.YNode(), "kind") }

// GroupVersion are the two parts of the apiVersion; the group is empty for the core's.
func (r *Resource) GroupVersion() (group, version string) {
	return splitAPIVersion(Text(r.Node.YNode(), "apiVersion"))
}

// Annotation is empty where there is none.
func (r *Resource) Annotation(key string) string {
	return Text(r.Node.YNode(), "metadata", "annotations", key)
}

// IsLocalConfig tells whether the object is for tools and not for the cluster. Kptfiles are.
func (r *Resource) IsLocalConfig() bool {
	mark := r.Annotation(LocalConfigAnnotation)
	return mark != "" && mark != "false" || r.IsKptfile()
}

// IsKptfile tells whether the object is the one that makes its folder a package.
func (r *Resource) IsKptfile() bool {
	group, _ := r.GroupVersion()
	return group == kptfileGroup && r.Kind() == KptfileName
}

// Subpackage is the folder of the package that the resource belongs to, "" for the root.
func (r *Resource) Subpackage() string { return r.folder }

func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, found := strings.Cut(apiVersion, "/"); found {
		return group, version
	}
	return "", apiVersion
}
