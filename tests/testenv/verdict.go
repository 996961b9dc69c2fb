package testenv

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifests are objects of one API as tests write them, and what the API server says of them.
type Manifests struct {
	Env      *Env
	Version  schema.GroupVersion
	Register func(*runtime.Scheme) error

	// Name is what an object is called that has no name of its own.
	Name string

	// Words are what the bodies say in short, and what it stands for.
	Words *strings.Replacer
}

// Strict makes an unknown field an error.
func Strict() client.FieldValidation { return client.FieldValidation(metav1.FieldValidationStrict) }

// Parse reads the body of an object, such as "spec: {…}".
func (m Manifests) Parse(t *testing.T, kind, body string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	body = m.Words.Replace(body)
	if err := yaml.UnmarshalStrict([]byte(body), &object.Object); err != nil {
		t.Fatalf("parse %s: %v", body, err)
	}
	object.SetGroupVersionKind(m.Version.WithKind(kind))
	object.SetNamespace("default")
	if object.GetName() == "" {
		object.SetName(m.Name)
	}
	return object
}

// Create offers the object, and compares what the API server says with the words of a refusal, which are "" where the object
// is to be accepted.
func (m Manifests) Create(t *testing.T, reason, kind, body, want string) {
	t.Helper()
	object := m.Parse(t, kind, body)
	m.Verdict(t, reason, object, m.Env.Client.Create(t.Context(), object, client.DryRunAll, Strict()), want)
}

// Edit makes the object with its status, and then offers what comes after it.
func (m Manifests) Edit(t *testing.T, reason, kind, before, after, want string) {
	t.Helper()
	namespace := m.Env.NewNamespace(t)
	old, edited := m.Parse(t, kind, before), m.Parse(t, kind, after)
	old.SetNamespace(namespace)
	edited.SetNamespace(namespace)
	status, reported := old.Object["status"]
	if err := m.Env.Client.Create(t.Context(), old, Strict()); err != nil {
		t.Fatalf("the object before the edit is refused: %v", err)
	}
	if old.Object["status"] = status; reported {
		if err := m.Env.Client.Status().Update(t.Context(), old); err != nil {
			t.Fatalf("the status before the edit is refused: %v", err)
		}
	}
	edited.SetResourceVersion(old.GetResourceVersion())
	m.Verdict(t, reason, edited, m.Env.Client.Update(t.Context(), edited, Strict()), want)
}

// Verdict compares what the API server said with what it was to say: nothing, or the words.
func (m Manifests) Verdict(t *testing.T, reason string, object *unstructured.Unstructured, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s\nwant it accepted, got: %v", reason, err)
	case want != "" && err == nil:
		t.Errorf("%s\nwant it refused with %q, but it was accepted", reason, want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("%s\nwant it refused with %q, got: %v", reason, want, err)
	case err == nil:
		m.decodes(t, object)
	}
}

// decodes: what the API server takes, Go can hold. A list with one object that it cannot hold would fail as a whole.
func (m Manifests) decodes(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := m.Register(scheme); err != nil {
		t.Fatal(err)
	}
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, typed); err != nil {
		t.Errorf("the API server takes what cannot be decoded: %v", err)
	}
}
