package kpt

import (
	"fmt"
	"strconv"
	"strings"
)

// Function is an entry of a pipeline.
type Function struct {
	// Image or Exec is what runs; one of them is given.
	Image string `json:"image,omitempty" yaml:"image,omitempty"`
	Exec  string `json:"exec,omitempty" yaml:"exec,omitempty"`
	// ConfigPath is a file of the package that has the function's configuration, instead of ConfigMap, which is the data of one.
	ConfigPath string            `json:"configPath,omitempty" yaml:"configPath,omitempty"`
	ConfigMap  map[string]string `json:"configMap,omitempty" yaml:"configMap,omitempty"`
	// Name tells entries apart, and Tag is a range of versions of the image.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	Tag  string `json:"tag,omitempty" yaml:"tag,omitempty"`
	// Selectors are what the function sees, everything where there are none; Exclude is what it does not see all the same.
	Selectors []Selector `json:"selectors,omitempty" yaml:"selectors,omitempty"`
	Exclude   []Selector `json:"exclude,omitempty" yaml:"exclude,omitempty"`
}

// ImageName is what a function's image is called, whatever the registry, the repository, the tag and the digest:
// set-labels for ghcr.io/x/krm-functions-catalog/set-labels:v0.2.
func ImageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}

// Selector selects the objects that have all that it says.
type Selector struct {
	APIVersion  string            `json:"apiVersion,omitempty" yaml:"apiVersion,omitempty"`
	Kind        string            `json:"kind,omitempty" yaml:"kind,omitempty"`
	Name        string            `json:"name,omitempty" yaml:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// Pipeline is what a package is rendered with: first the mutators, each on what the one before it made, then the validators.
type Pipeline struct {
	Mutators   []Function `json:"mutators,omitempty" yaml:"mutators,omitempty"`
	Validators []Function `json:"validators,omitempty" yaml:"validators,omitempty"`
}

// ownMarker begins the names of entries that a controller keeps. No name of Kubernetes has a slash in it, so that what follows
// is read in one way only.
const ownMarker = "sluice.dev/"

// Owner is the variant that keeps an entry of a pipeline.
type Owner struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is "namespace/name".
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

// Mark is what the names of all its entries begin with.
func (o Owner) Mark() string { return ownMarker + o.String() + "/" }

// Nobody is the owner that stands for any other. No object has such a name.
func Nobody() Owner { return Owner{Namespace: "-", Name: "-"} }

// FunctionName is what the owner's entry is called that stands at the index among its own, and that it calls name.
func (o Owner) FunctionName(index int, name string) string {
	called := fmt.Sprintf("%s%d", o.Mark(), index)
	if name == "" {
		return called
	}
	return called + "/" + name
}

// owns tells whether the name is one that FunctionName makes for this owner.
func (o Owner) owns(name string) bool {
	found, ok := FunctionOwner(name)
	return ok && found == o
}

// FunctionOwner is whose the entry of the name is; not ok for entries that no controller keeps.
func FunctionOwner(name string) (owner Owner, ok bool) {
	rest, found := strings.CutPrefix(name, ownMarker)
	parts := strings.SplitN(rest, "/", 4)
	if !found || len(parts) < 3 || parts[0] == "" || parts[1] == "" {
		return Owner{}, false
	}
	if _, err := strconv.ParseUint(parts[2], 10, 31); err != nil {
		return Owner{}, false
	}
	return Owner{Namespace: parts[0], Name: parts[1]}, true
}
