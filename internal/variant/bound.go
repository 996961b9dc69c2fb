package variant

import (
	"cmp"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/printable"
)

// MaxBound is how long a value may be that a slot takes over, in bytes of JSON.
const MaxBound = 256 << 10

// Bound is what the slots of a name are to hold, or why nothing is bound to them.
type Bound struct {
	Name string `json:"name"`
	// Type is the one that the value is to be of; empty for that of what a slot holds.
	Type kpt.Type `json:"type,omitempty"`
	// AllowSecrets lets Secrets be read, and be written to.
	AllowSecrets bool `json:"allowSecrets,omitempty"`
	// Path leads to the value, and Of says in words what it is of.
	Path string `json:"path,omitempty"`
	Of   string `json:"of"`
	// Within is the object of the package that has the value, nil where Value is it.
	Within *Within `json:"within,omitempty"`
	Value  any     `json:"value,omitempty"`
	// Reason says in one word why nothing is bound, and Message in a sentence; empty where something is.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Within chooses an object of the package. What is empty may be anything.
type Within struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	File       string `json:"file,omitempty"`
}

// Context is where a package says what it is to know of itself.
func Context() *Within {
	return &Within{APIVersion: "v1", Kind: "ConfigMap", Name: kpt.ContextName, File: kpt.ContextFile}
}

// NoBinding says that no binding is for the slots of a name.
const NoBinding = "no binding has the name; add one to spec.bindings"

// From says where the value is from.
func (b Bound) From() string {
	if b.Path == "" {
		return b.Of
	}
	return b.Path + " of " + b.Of
}

// Found binds the value that the path leads to in the object of the cluster that was found, or says why there is none.
func (b *Bound) Found(group, kind string, found Found) {
	var why string
	switch {
	case found.Refusal != "":
		b.Reason, why = ReasonForbidden, found.Refusal
	case len(found.Objects) == 0:
		b.Reason, why = ReasonNoResource, "there is no "+b.Of
	case len(found.Objects) > 1:
		b.Reason, why = ReasonAmbiguous, ambiguous(found.Objects)
	default:
		object := found.Objects[0]
		b.Of = kind + " " + object.Namespace + "/" + object.Name
		value, _, err := valueIn(object.Content, cmp.Or(b.Path, kpt.BoundField(group, kind)))
		if b.Value = value; err == nil {
			return
		}
		b.Reason, why = reasonOf(err), fmt.Sprintf("%s: %v", b.From(), err)
	}
	b.Message = printable.Line(why, maxMessage)
}

// errTooLong is a value of which less has to be bound.
var errTooLong = fmt.Errorf("at most %d can be bound: choose a part of it by the path", MaxBound)

// reasonOf says in one word why no value was found.
func reasonOf(err error) string {
	if errors.Is(err, errTooLong) {
		return ReasonInvalid
	}
	return ReasonPathMissing
}

// valueIn is what the path leads to, and the keys that do, as far as they are there. Nothing there is an error.
func valueIn(object any, path string) (any, []string, error) {
	found, at, err := function.ValueAt(object, path)
	if err != nil {
		return nil, at, err
	}
	value, length, err := kpt.Plain(found)
	switch {
	case err != nil:
		return nil, at, err
	case value == nil:
		return nil, at, errors.New("there is nothing; mend the path, or the object")
	case length > MaxBound:
		return nil, at, fmt.Errorf("the value has %d bytes; %w", length, errTooLong)
	}
	return value, at, nil
}

// object is the one of the package that has the value.
func (b Bound) object(resources *kpt.Resources) (*kpt.Resource, error) {
	var found []*kpt.Resource
	for _, item := range resources.Items {
		if b.Within.is(item) {
			found = append(found, item)
		}
	}
	switch {
	case len(found) == 0:
		return nil, errors.New("the package has no such object")
	case len(found) > 1:
		return nil, fmt.Errorf("the package has %d such objects: say which by the apiVersion, namespace or file", len(found))
	}
	return found[0], nil
}

func (w *Within) is(item *kpt.Resource) bool {
	id := item.ID()
	return id.Kind == w.Kind && id.Name == w.Name && !item.IsKptfile() &&
		(w.APIVersion == "" || w.APIVersion == kpt.Text(item.Node.YNode(), "apiVersion")) &&
		(w.Namespace == "" || w.Namespace == id.Namespace) && (w.File == "" || w.File == item.File)
}
