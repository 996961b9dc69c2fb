// Package schema checks objects against the OpenAPI of an API server, and keeps what it got from there. It does not know of
// packages, of their files, or of what becomes of a finding.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Schema says what a value may be, in the words of OpenAPI 3 as Kubernetes speaks it.
type Schema struct {
	Ref    string `json:"$ref"`
	Type   string `json:"type"`
	Format string `json:"format"`

	Properties           map[string]*Schema `json:"properties"`
	AdditionalProperties *orBool            `json:"additionalProperties"`
	Required             []string           `json:"required"`
	MinProperties        *int               `json:"minProperties"`
	MaxProperties        *int               `json:"maxProperties"`

	Items    *Schema `json:"items"`
	MinItems *int    `json:"minItems"`
	MaxItems *int    `json:"maxItems"`

	Enum      []any    `json:"enum"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	Pattern   *pattern `json:"pattern"`

	Minimum          *float64 `json:"minimum"`
	Maximum          *float64 `json:"maximum"`
	ExclusiveMinimum bool     `json:"exclusiveMinimum"`
	ExclusiveMaximum bool     `json:"exclusiveMaximum"`

	AllOf []*Schema `json:"allOf"`
	AnyOf []*Schema `json:"anyOf"`
	OneOf []*Schema `json:"oneOf"`
	Not   *Schema   `json:"not"`

	IntOrString bool               `json:"x-kubernetes-int-or-string"`
	Preserve    bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded    bool               `json:"x-kubernetes-embedded-resource"`
	Kinds       []GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// GroupVersionKind is what an object calls itself.
type GroupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// orBool is a schema, or whether anything is allowed.
type orBool struct {
	allows bool
	schema *Schema
}

// UnmarshalJSON reads both.
func (o *orBool) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &o.allows) == nil {
		return nil
	}
	o.allows, o.schema = true, &Schema{}
	return json.Unmarshal(text, o.schema)
}

// maxPattern bounds the expressions that texts are compared with.
const maxPattern = 4096

// maxProgram bounds what an expression is compiled to, in instructions: a few bytes can be hundreds of thousands.
const maxProgram = 10_000

// pattern is an expression that a text has to match somewhere. It is compiled by who needs it: a schema has many.
type pattern string

// UnmarshalJSON reads it.
func (p *pattern) UnmarshalJSON(text []byte) error {
	var expression string
	if err := json.Unmarshal(text, &expression); err != nil {
		return err
	}
	if len(expression) > maxPattern {
		return fmt.Errorf("a pattern is longer than %d bytes", maxPattern)
	}
	*p = pattern(expression)
	return nil
}

// matcher is an expression that is compiled, and how many instructions that took. It has none for one that is too large, or
// that Go has no word for: those are left out, as the API server does.
type matcher struct {
	*regexp.Regexp

	size int
}

func (p pattern) compile() matcher {
	parsed, err := syntax.Parse(string(p), syntax.Perl)
	if err != nil {
		return matcher{}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return matcher{}
	}
	made := matcher{size: len(program.Inst)}
	if made.size <= maxProgram {
		made.Regexp, _ = regexp.Compile(string(p)) // It is nil where that fails.
	}
	return made
}

// Document is what an API server says of one version of one group.
type Document struct {
	// Digest changes when what the document says does.
	Digest string

	schemas map[string]*Schema
	kinds   map[GroupVersionKind]*Schema
}

// refPrefix is where documents keep what is referred to.
const refPrefix = "#/components/schemas/"

// Parse reads a document.
func Parse(digest string, text []byte) (*Document, error) {
	var read struct {
		Components struct {
			Schemas map[string]*Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("read the OpenAPI: %w", err)
	}
	d := &Document{Digest: digest, schemas: read.Components.Schemas, kinds: map[GroupVersionKind]*Schema{}}
	for _, s := range d.schemas {
		if s == nil {
			return nil, errors.New("read the OpenAPI: a schema is null")
		}
		for _, kind := range s.Kinds {
			d.kinds[kind] = s
		}
	}
	return d, nil
}

// Of returns the document of one schema, as the node has it: that of a CustomResourceDefinition.
func Of(kind GroupVersionKind, node *yaml.Node) (*Document, error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if text, err = sigsyaml.YAMLToJSON(text); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	s := &Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	s.Embedded = true // Every object has an apiVersion, a kind and metadata.
	return &Document{kinds: map[GroupVersionKind]*Schema{kind: s}}, nil
}

// Has tells whether the document knows the kind.
func (d *Document) Has(kind GroupVersionKind) bool {
	return d != nil && d.kinds[kind] != nil
}

// follow is what the reference leads to, nil for nowhere.
func (d *Document) follow(ref string) *Schema {
	return d.schemas[strings.TrimPrefix(ref, refPrefix)]
}
