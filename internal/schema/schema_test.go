package schema

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

var widget = GroupVersionKind{"example.com", "v1", "Widget"}

// findings are those of an object by a schema, both as YAML.
func findings(t *testing.T, schema, object string) []string {
	t.Helper()
	d, err := Of(widget, yaml.MustParse(schema).YNode())
	if err != nil {
		t.Fatal(err)
	}
	check := &Check{Strict: true, Steps: 10_000, Findings: 5}
	found, err := check.Object(t.Context(), d, widget, yaml.MustParse(object).YNode())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, one := range found {
		texts = append(texts, strings.Join(one.Path, "/")+" "+one.Problem)
	}
	return texts
}

// TestWhatASchemaSaysHolds goes through its words. Each value is wrong; what is right is beside it and not found.
func TestWhatASchemaSaysHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, object, want string }{
		"string":      {"properties: {a: {type: string}, b: {type: string}}", "{a: 1, b: '1'}", "a is an integer, and has to be a string: put it in quotes"},
		"yes":         {"properties: {a: {type: string}, b: {type: string}}", "{a: yes, b: 'yes'}", "a is a word that is no string to all readers of YAML, and has to be a string: put it in quotes"},
		"date":        {"properties: {a: {type: string, format: date-time}, b: {type: string, format: date-time}}", "{a: monday, b: '2026-01-02T03:04:05Z'}", "a is no date and time as in 2006-01-02T15:04:05Z"},
		"integer":     {"properties: {a: {type: integer}, b: {type: integer}}", "{a: 1.5, b: 0x10}", "a is a number, and has to be an integer"},
		"number":      {"properties: {a: {type: number}, b: {type: number}, c: {type: number}}", "{a: '1', b: 1, c: 1.5}", "a is a string, and has to be a number"},
		"boolean":     {"properties: {a: {type: boolean}, b: {type: boolean}}", "{a: 'true', b: true}", "a is a string, and has to be a boolean"},
		"object":      {"properties: {a: {type: object}, b: {type: object}}", "{a: [], b: {}}", "a is an array, and has to be an object"},
		"array":       {"properties: {a: {type: array, items: {type: string}}}", "{a: [x, {}]}", "a/1 is an object, and has to be a string"},
		"required":    {"required: [a, b]", "{b: 1}", "a is missing"},
		"null":        {"required: [a]\nproperties: {a: {type: string}, b: {type: string}}", "{a: null, b: null}", "a is missing"},
		"enum":        {"properties: {a: {enum: [x, z]}, b: {enum: [1, true]}, c: {enum: [1, true]}}", "{a: q, b: 1, c: true}", `a is none of "x", "z"`},
		"pattern":     {"properties: {a: {pattern: '^a+$'}, b: {pattern: '^a+$'}}", "{a: b, b: aa}", "a does not match ^a+$"},
		"length":      {"properties: {a: {maxLength: 2}, b: {minLength: 2}}", "{a: äöü, b: äö}", "a has 3 characters, and 2 are allowed"},
		"items":       {"properties: {a: {minItems: 1}, b: {maxItems: 1}}", "{a: [], b: [1]}", "a has 0 elements, and at least 1 are needed"},
		"fields":      {"properties: {a: {maxProperties: 1, additionalProperties: true}}", "{a: {b: 1, c: 2}}", "a has 2 fields, and 1 are allowed"},
		"minimum":     {"properties: {a: {minimum: 1}, b: {minimum: 1}}", "{a: 0, b: 1}", "a is less than is allowed: 1"},
		"exclusive":   {"properties: {a: {maximum: 1, exclusiveMaximum: true}, b: {maximum: 1}}", "{a: 1, b: 1}", "a is more than is allowed: 1, and not that either"},
		"int32":       {"properties: {a: {type: integer, format: int32}, b: {type: integer, format: int64}}", "{a: 4294967296, b: 4294967296}", "a is more than is allowed: 2147483647"},
		"base64":      {"properties: {a: {type: string, format: byte}, b: {type: string, format: byte}}", "{a: '?', b: YQ==}", "a is no base64"},
		"int or text": {"properties: {a: {x-kubernetes-int-or-string: true}, b: {x-kubernetes-int-or-string: true}}", "{a: 1.5, b: 1}", "a is a number, and has to be an integer or a string"},
		"all of":      {"properties: {a: {allOf: [{type: string}, {minLength: 2}]}}", "{a: x}", "a has 1 characters, and at least 2 are needed"},
		"any of":      {"properties: {a: {anyOf: [{type: string}, {type: integer}]}, b: {anyOf: [{type: string}, {type: integer}]}}", "{a: true, b: 1}", "a is none of what is allowed: it fits no schema of anyOf"},
		"one of":      {"properties: {a: {oneOf: [{required: [x]}, {required: [z]}]}}", "{a: {x: 1, z: 1}}", "a fits 2 schemas of oneOf, and has to fit one"},
		"not":         {"properties: {a: {not: {enum: [x]}}, b: {not: {enum: [x]}}}", "{a: x, b: z}", "a is what is not allowed"},
		"unknown":     {"properties: {a: {type: object, properties: {b: {type: string}}}}", "{apiVersion: v1, kind: b, metadata: {x: y}, a: {c: 1}}", "a/c is not known"},
		"no more":     {"properties: {a: {additionalProperties: false, properties: {b: {}}}}", "{a: {b: 1, c: 1}}", "a/c is not known"},
		"more":        {"properties: {a: {additionalProperties: {type: string}}}", "{a: {b: x, c: 1}}", "a/c is an integer, and has to be a string: put it in quotes"},
		"preserved":   {"properties: {a: {x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}}", "{a: {b: 1, c: 1}}", "a/b is an integer, and has to be a string: put it in quotes"},
		"known partly": {
			"properties: {a: {properties: {b: {}}, allOf: [{properties: {c: {properties: {d: {}}}}}], anyOf: [{properties: {e: {}}}]}}",
			"{a: {b: 1, c: {d: 1, f: 1}, e: 1}}", "a/c/f is not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]string{c.want}, findings(t, c.schema, c.object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckingIsBounded is about schemas that ask for more than anybody has time for.
func TestCheckingIsBounded(t *testing.T) {
	t.Parallel()
	doubling := "{}"
	for range 40 {
		doubling = "{anyOf: [" + doubling + ", {not: {}}, {not: {}}]}"
	}
	wide := "{allOf: [" + strings.Repeat("{}, ", 2000) + "{}]}"
	for name, schema := range map[string]string{
		"wide": "additionalProperties: " + wide, "deep": "additionalProperties: " + strings.Repeat("{allOf: [", 250) + "{}" + strings.Repeat("]}", 250),
		"combined": "additionalProperties: " + doubling,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Of(widget, yaml.MustParse(schema).YNode())
			if err != nil {
				t.Fatal(err)
			}
			check := &Check{Strict: true, Steps: 5_000, Findings: 5}
			object := yaml.MustParse("{a: 1" + manyFields(200) + "}").YNode()
			if _, err := check.Object(t.Context(), d, widget, object); !errors.Is(err, ErrTooMuch) {
				t.Error(err)
			}
		})
	}
}

func manyFields(count int) string {
	text := ""
	for i := range count {
		text += ", f" + strconv.Itoa(i) + ": 1"
	}
	return text
}

func TestWhoHasNoTimeGetsNoFindings(t *testing.T) {
	t.Parallel()
	d, err := Of(widget, yaml.MustParse("additionalProperties: {type: string}").YNode())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check := &Check{Steps: 2048, Findings: 1 << 20}
	if _, err := check.Object(ctx, d, widget, yaml.MustParse("{a: [x]"+manyFields(1100)+"}").YNode()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzParse looks for texts that break it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"components":{"schemas":{"a":{"$ref":"#/components/schemas/a","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]}}}}`))
	f.Add([]byte(`{"components":{"schemas":{"a":{"properties":{"b":null},"additionalProperties":false,"pattern":"(","allOf":[null]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse("", text)
		if err != nil || !d.Has(widget) {
			return
		}
		check := &Check{Strict: true, Steps: 1000, Findings: 5}
		_, _ = check.Object(t.Context(), d, widget, yaml.MustParse("{a: 1, b: [x, {c: null}], apiVersion: v1}").YNode())
	})
}
