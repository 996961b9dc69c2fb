package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BindingType is what a bound value is.
type BindingType string

// The types of values.
const (
	StringBinding  BindingType = "string"
	IntegerBinding BindingType = "integer"
	NumberBinding  BindingType = "number"
	BooleanBinding BindingType = "boolean"
	MapBinding     BindingType = "map"
	ListBinding    BindingType = "list"
)

// Binding says what the binding points of a name hold. A point is a field of an object of the package that has the comment
// 'packages.sluice.dev/bind: <name>' behind it, or an object that has the annotation.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || has(self.from.object) || has(self.from.packageObject)",message="path leads into an object: from.object or from.packageObject"
type Binding struct {
	BindingTarget `json:",inline"`

	// From says where the value is.
	// +required
	From BindingSource `json:"from"`
}

// BindingTarget says which points a binding is for, and what they take.
type BindingTarget struct {
	// Name of the points.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`
	// +required
	Name string `json:"name"`

	// Path of the value in the object: 'spec.hosts.0', 'data.[a.b]' or 'spec.containers.[name=app].image'. Without it, it is
	// the data of a ConfigMap or Secret, and the spec of anything else.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Path string `json:"path,omitempty"`

	// Type of the value. A text that says a value of the type is read as one, and a number or boolean is written as a text.
	// Without it, the value has to be of the type that the point holds.
	// +kubebuilder:validation:Enum=string;integer;number;boolean;map;list
	// +optional
	Type BindingType `json:"type,omitempty"`

	// AllowSecrets lets the binding read Secrets, and fill points in them. What it binds is written to Git, where everyone
	// who reads the repository reads it.
	// +optional
	AllowSecrets bool `json:"allowSecrets,omitempty"`
}

// BindingSource is where a value is: exactly one of its fields.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type BindingSource struct {
	// Object of the cluster. It is read as the variant's ServiceAccount.
	// +optional
	Object *BindingObject `json:"object,omitempty"`

	// Literal is the value itself: any of JSON's, of at most 16 KiB.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Literal *Literal `json:"literal,omitempty"`

	// PackageContext is a key of the package's context, whose value is a text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	PackageContext string `json:"packageContext,omitempty"`

	// PackageObject is an object of the package, as it is once its functions have run.
	// +optional
	PackageObject *PackageObject `json:"packageObject,omitempty"`
}

// BindingObject is an object of the cluster.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.labelSelector))",message="only one of name and labelSelector may be set"
type BindingObject struct {
	// APIVersion of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	// +required
	Kind string `json:"kind"`

	// Name of the object. Without name and labelSelector, it is that of the downstream Repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects the object by its labels. Of several that it selects, none is taken.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Namespace of the object. Without it, that of the PackageVariant. Another one takes a ServiceAccount that may read
	// the object there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// PackageObject is an object of the package.
type PackageObject struct {
	// APIVersion of the object. Without it, any.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	// +required
	Kind string `json:"kind"`

	// Name of the object, as it is in the package once its functions have run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Namespace of the object. Without it, any.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// File of the package that the object is in. Without it, any.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	File string `json:"file,omitempty"`
}

// Literal is any value. Two that say the same are equal.
type Literal struct {
	// JSON is the value, without spaces and with its keys in order.
	JSON string `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (l Literal) MarshalJSON() ([]byte, error) { return []byte(l.JSON), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Literal) UnmarshalJSON(text []byte) error {
	value, err := Literal{JSON: string(text)}.Value()
	if err != nil {
		return err
	}
	made, err := NewLiteral(value)
	if err == nil {
		*l = *made
	}
	return err
}

// NewLiteral is the value.
func NewLiteral(value any) (*Literal, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return &Literal{JSON: string(bytes.TrimSpace(out.Bytes()))}, nil
}

// TextLiteral is the text.
func TextLiteral(text string) *Literal {
	made, _ := NewLiteral(text) // No text fails.
	return made
}

// Value is what the literal says, with numbers as json.Number.
func (l Literal) Value() (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(l.JSON)))
	decoder.UseNumber()
	return value, decoder.Decode(&value)
}

// Check says what is wrong with the literal as the value of a binding. How long any value is, no schema can say.
func (l *Literal) Check() error {
	switch {
	case l == nil || l.JSON == "null":
		return errors.New("from.literal is null; a binding has a value")
	case len(l.JSON) > MaxLiteral:
		return fmt.Errorf("from.literal has %d bytes; at most %d are allowed: put it into a ConfigMap", len(l.JSON), MaxLiteral)
	}
	return nil
}

// BindingStatus says what the binding points of a name are filled with.
type BindingStatus struct {
	// Name of the points.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// Points is how many there are.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Points int32 `json:"points,omitempty"`

	// Required says whether the package cannot do without.
	// +optional
	Required bool `json:"required,omitempty"`

	// From says where the value is, such as 'data.region of ConfigMap default/edge'; empty where there is no binding.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	From string `json:"from,omitempty"`

	// Reason says in one word why nothing is bound, such as 'BindingMissing'.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says why nothing is bound.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
