package kpt

import (
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const kptfileGroup = "kpt.dev"

// Upstream says what a package was made from.
type Upstream struct {
	Repo      string `json:"repo"`
	Directory string `json:"directory"`
	Ref       string `json:"ref"`
	// Strategy is how kpt itself would update the package.
	Strategy string `json:"strategy,omitempty"`
}

// Lock says which state of the upstream a package was made from.
type Lock struct {
	Repo      string `json:"repo"`
	Directory string `json:"directory"`
	Ref       string `json:"ref"`
	Commit    string `json:"commit"`
}

// Condition is what somebody found out about a package.
type Condition struct {
	Type    string `yaml:"type"`
	Status  string `yaml:"status"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

// Kptfile is the file that makes a folder a package. What is read is what it says now, and what is set changes no more than
// it must: comments, order and style of all else stay.
type Kptfile struct {
	file     string
	resource *Resource
	// alone are the resources of a Kptfile that was read by itself.
	alone *Resources
}

// ReadKptfile reads the text of a Kptfile as strictly as kpt does: fields that it does not know are refused, and so are those
// of another kind, and everything that comes twice. The error is a *SyntaxError.
func ReadKptfile(text []byte) (*Kptfile, error) {
	alone, err := Open(Package{KptfileName: {Content: text, Mode: 0o644}})
	if err != nil {
		return nil, err
	}
	kptfile, err := alone.Kptfile("")
	if err != nil {
		return nil, err
	}
	kptfile.alone = alone
	return kptfile, nil
}

// ErrNoKptfile says that a folder has no Kptfile.
var ErrNoKptfile = errors.New("there is no Kptfile")

// Kptfile is that of the folder, "" for the root, as strictly as ReadKptfile reads it. Changes to it are changes to the
// resources. The error is ErrNoKptfile where there is none.
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
			return nil, &SyntaxError{File: name, Line: lineIn(item, item.Node.YNode()), Problem: "it has an object that is no Kptfile"}
		case found != nil:
			return nil, &SyntaxError{File: name, Line: lineIn(item, item.Node.YNode()), Problem: "it has a second Kptfile"}
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
	return &Kptfile{file: name, resource: found}, nil
}

// lineIn is where in its file a node of the resource was read.
func lineIn(r *Resource, node *yaml.Node) int {
	if r.origin == nil {
		return node.Line
	}
	return r.origin.line + max(node.Line-1, 0)
}

// Bytes is the text of a Kptfile that was read by itself, as it is now.
func (k *Kptfile) Bytes() ([]byte, error) {
	if k.alone == nil {
		return nil, errors.New("the Kptfile is part of a package")
	}
	written, err := k.alone.Package()
	return written[KptfileName].Content, err
}

func (k *Kptfile) root() *yaml.Node { return k.resource.Node.YNode() }

// Name is that of the package.
func (k *Kptfile) Name() string { return scalarAt(k.root(), "metadata", "name") }

// Labels are those of the package.
func (k *Kptfile) Labels() map[string]string { return stringsAt(k.root(), "metadata", "labels") }

// Annotations are those of the package.
func (k *Kptfile) Annotations() map[string]string {
	return stringsAt(k.root(), "metadata", "annotations")
}

// Upstream is nil where the package has none that is in git.
func (k *Kptfile) Upstream() *Upstream {
	git := lookupPath(k.root(), "upstream", "git")
	if git == nil {
		return nil
	}
	return &Upstream{
		Repo: scalarAt(git, "repo"), Directory: scalarAt(git, "directory"), Ref: scalarAt(git, "ref"),
		Strategy: scalarAt(k.root(), "upstream", "updateStrategy"),
	}
}

// Lock is nil where the package has none that is in git.
func (k *Kptfile) Lock() *Lock {
	git := lookupPath(k.root(), "upstreamLock", "git")
	if git == nil {
		return nil
	}
	return &Lock{
		Repo: scalarAt(git, "repo"), Directory: scalarAt(git, "directory"), Ref: scalarAt(git, "ref"), Commit: scalarAt(git, "commit"),
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
		return Pipeline{}, &SyntaxError{File: k.file, Line: lineIn(k.resource, node), Problem: err.Error()}
	}
	return pipeline, nil
}

// Gates are the types of the conditions that must be true before the package is ready.
func (k *Kptfile) Gates() []string { return gatesOf(k.root()) }

// Conditions are those that the Kptfile reports.
func (k *Kptfile) Conditions() []Condition { return conditionsOf(k.root()) }

func gatesOf(root *yaml.Node) []string {
	gates := []string{}
	for _, gate := range elements(lookupPath(root, "info", "readinessGates")) {
		gates = append(gates, scalarAt(gate, "conditionType"))
	}
	return gates
}

func conditionsOf(root *yaml.Node) []Condition {
	conditions := []Condition{}
	for _, found := range elements(lookupPath(root, "status", "conditions")) {
		conditions = append(conditions, Condition{
			Type: scalarAt(found, "type"), Status: scalarAt(found, "status"),
			Reason: scalarAt(found, "reason"), Message: scalarAt(found, "message"),
		})
	}
	return conditions
}

// elements are those of a list.
func elements(list *yaml.Node) []*yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}
