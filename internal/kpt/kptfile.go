package kpt

import (
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const kptfileGroup = "kpt.dev"

// Upstream says what a package was made from.
type Upstream struct {
	Repo, Directory, Ref string
	// Strategy is how kpt itself would update the package.
	Strategy string
}

// Lock says which state of the upstream a package was made from.
type Lock struct {
	Repo, Directory, Ref, Commit string
}

// Condition is what somebody found out about a package.
type Condition struct {
	Type, Status, Reason, Message string
}

// Kptfile is the file that makes a folder a package. What is read is what it says now, and what is set changes no more than
// it must: comments, order and style of all else stay.
type Kptfile struct {
	resource *Resource
}

// ErrNoKptfile says that a folder has no Kptfile.
var ErrNoKptfile = errors.New("there is no Kptfile")

// Kptfile is that of the folder, "" for the root, read as strictly as kpt does: fields that it does not know are refused, and so
// are those of another kind, and everything that comes twice. Changes to it are changes to the resources. The error is a
// *SyntaxError, or ErrNoKptfile where there is none.
func (r *Resources) Kptfile(folder string) (*Kptfile, error) {
	name := KptfileName
	if folder != "" {
		name = folder + "/" + KptfileName
	}
	var found *Resource
	for _, item := range r.Items {
		switch {
		case item.File != name:
		case !item.IsKptfile():
			return nil, item.problem(item.Node.YNode(), "it has an object that is no Kptfile")
		case found != nil:
			return nil, item.problem(item.Node.YNode(), "it has a second Kptfile")
		default:
			found = item
		}
	}
	if found == nil {
		if _, ok := r.from[name]; ok {
			return nil, &SyntaxError{File: name, Line: 1, Problem: "it is not a Kptfile of kpt.dev"}
		}
		return nil, fmt.Errorf("%w: %q", ErrNoKptfile, name)
	}
	if err := checkKptfile(found); err != nil {
		return nil, err
	}
	return &Kptfile{resource: found}, nil
}

func (k *Kptfile) root() *yaml.Node { return k.resource.Node.YNode() }

// Name is that of the package.
func (k *Kptfile) Name() string { return Text(k.root(), "metadata", "name") }

// Labels are those of the package.
func (k *Kptfile) Labels() map[string]string { return stringsAt(k.root(), "metadata", "labels") }

// Annotations are those of the package.
func (k *Kptfile) Annotations() map[string]string {
	return stringsAt(k.root(), "metadata", "annotations")
}

// Upstream is nil where the package has none that is in git.
func (k *Kptfile) Upstream() *Upstream {
	git := Lookup(k.root(), "upstream", "git")
	if git == nil {
		return nil
	}
	return &Upstream{
		Repo: Text(git, "repo"), Directory: Text(git, "directory"), Ref: Text(git, "ref"),
		Strategy: Text(k.root(), "upstream", "updateStrategy"),
	}
}

// Lock is nil where the package has none that is in git.
func (k *Kptfile) Lock() *Lock {
	git := Lookup(k.root(), "upstreamLock", "git")
	if git == nil {
		return nil
	}
	return &Lock{
		Repo: Text(git, "repo"), Directory: Text(git, "directory"), Ref: Text(git, "ref"), Commit: Text(git, "commit"),
	}
}

// Pipeline is what the package is rendered with.
func (k *Kptfile) Pipeline() (Pipeline, error) {
	pipeline := Pipeline{}
	node := lookup(k.root(), "pipeline")
	if node == nil {
		return pipeline, nil
	}
	if err := node.Decode(&pipeline); err != nil {
		return Pipeline{}, k.resource.problem(node, err.Error())
	}
	return pipeline, nil
}

// Gates are the types of the conditions that must be true before the package is ready.
func (k *Kptfile) Gates() []string {
	gates := []string{}
	for _, gate := range Elements(Lookup(k.root(), "info", "readinessGates")) {
		gates = append(gates, Text(gate, "conditionType"))
	}
	return gates
}

// Conditions are those that the Kptfile reports.
func (k *Kptfile) Conditions() []Condition {
	conditions := []Condition{}
	for _, found := range Elements(Lookup(k.root(), "status", "conditions")) {
		conditions = append(conditions, Condition{
			Type: Text(found, "type"), Status: Text(found, "status"),
			Reason: Text(found, "reason"), Message: Text(found, "message"),
		})
	}
	return conditions
}
