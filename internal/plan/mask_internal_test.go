package plan

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/engine"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestMask: no value of a Secret is left anywhere, and whether two are equal can be told.
func TestMask(t *testing.T) {
	t.Parallel()
	const canary, held = "canary-value", "another canary"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := read(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{%s}'}}\ndata: {a: %s, b: %s}\nstringData: {c: %s}", encoded, encoded, encoded, canary))
	m := newMask([]string{held, "ab"}, []engine.Row{{Object: secret}}, derived{})
	other := read(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {plain: about, in: 'x %s y', short: ab, list: 'z%s'}", held, encoded))
	other.Object["items"] = []any{"fine", held, map[string]any{"of " + held: "named"}}
	got, masked := m.object(secret), m.object(other)
	for _, text := range []string{fmt.Sprint(got.Object), fmt.Sprint(masked.Object), m.text("the value " + held + " is wrong, and so is " + encoded)} {
		for _, value := range []string{canary, encoded, held} {
			if strings.Contains(text, value) {
				t.Errorf("%q is in %s", value, text)
			}
		}
	}
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	if data["a"] != data["b"] || !isMark(data["a"]) {
		t.Errorf("equal values have other marks: %v", data)
	}
	if plain, _, _ := unstructured.NestedString(masked.Object, "data", "plain"); plain != "about" {
		t.Errorf("what only has a short value in it became %q", plain)
	}
	if short, _, _ := unstructured.NestedString(masked.Object, "data", "short"); !isMark(short) {
		t.Errorf("a short value became %q", short)
	}
	if again := newMask([]string{held}, nil, derived{}); again.mark(held) == m.mark(held) {
		t.Error("the marks of two processes are the same, so that values can be tried")
	}
	if strings.Contains(fmt.Sprint(other.Object), markPrefix) {
		t.Error("the object itself was changed")
	}
}

// TestMaskOfOtherForms: a value that is substituted without quotes is a number, and one that a message quotes is escaped.
func TestMaskOfOtherForms(t *testing.T) {
	t.Parallel()
	m := newMask([]string{"73641985", `p"ss\w0rd`}, nil, derived{})
	masked := m.object(read(t, "apiVersion: v1\nkind: K\nmetadata: {name: b}\nspec: {pin: 73641985, pins: [73641985], port: 80}"))
	if spec := fmt.Sprint(masked.Object["spec"]); strings.Contains(spec, "73641985") || !strings.Contains(spec, "port:80") {
		t.Errorf("the number is in %s, or another one is not", spec)
	}
	if told := m.text(fmt.Sprintf("%q is wrong", `p"ss\w0rd`)); told != `"(hidden)" is wrong` {
		t.Errorf("the quoted value is told: %s", told)
	}
}

// TestPathsOfConflicts: a field that is taken over is found among those that change.
func TestPathsOfConflicts(t *testing.T) {
	t.Parallel()
	if got, want := pathOf(`.spec.ports[name="a"].port`), "spec.ports[name=a].port"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCompare: items of lists by the keys that managers have noted, other lists as a whole, and not what every write changes.
func TestCompare(t *testing.T) {
	t.Parallel()
	const managed = `
  managedFields:
  - {manager: m, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:ports': {'k:{"name":"a"}': {'.': {}, 'f:port': {}}}}}}`
	before := read(t, "apiVersion: v1\nkind: K\nmetadata:\n  name: x\n  generation: 1\n  annotations: {a.b/c: one}"+managed+
		"\nspec: {count: 1, gone: x, ports: [{name: a, port: 1}, {name: b, port: 2}], args: [a, b]}\nstatus: {ok: true}")
	after := read(t, "apiVersion: v1\nkind: K\nmetadata:\n  name: x\n  generation: 2\n  annotations: {a.b/c: two}"+managed+
		"\nspec: {count: 2, ports: [{name: c, port: 3}, {name: a, port: 4}], args: [a], deep: {er: {}}}\nstatus: {ok: false}")
	want := []Field{
		{Path: "metadata.annotations[a.b/c]", Before: `"one"`, After: `"two"`},
		{Path: "spec.args", Before: `["a","b"]`, After: `["a"]`},
		{Path: "spec.count", Before: "1", After: "2"},
		{Path: "spec.deep.er", After: "{}"},
		{Path: "spec.gone", Before: `"x"`},
		{Path: "spec.ports[name=c].name", After: `"c"`},
		{Path: "spec.ports[name=c].port", After: "3"},
		{Path: "spec.ports[name=a].port", Before: "1", After: "4"},
		{Path: "spec.ports[name=b].name", Before: `"b"`},
		{Path: "spec.ports[name=b].port", Before: "2"},
	}
	if diff := cmp.Diff(want, (&mask{}).compare(shown(before), shown(after), listsOf(before, after))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWhatWasSecretIsHidden: a value that a Secret had before is known by where it stands alone.
func TestWhatWasSecretIsHidden(t *testing.T) {
	t.Parallel()
	m := newMask([]string{"new-canary"}, nil, derived{})
	at := func(value string) *unstructured.Unstructured {
		obj := read(t, strings.ReplaceAll("apiVersion: v1\nkind: K\nmetadata: {name: x, annotations: {a: VALUE}}\nspec: {args: [-p, VALUE], env: [{name: P, value: VALUE, other: plain}]}\ndata: {b: VALUE}", "VALUE", value))
		return m.object(obj)
	}
	before, after := shown(at("old-canary")), shown(at("new-canary"))
	fields := m.compare(before, after, lists{".spec.env": {"name"}})
	for _, told := range []any{fields, before.Object, after.Object} {
		if text := fmt.Sprint(told); strings.Contains(text, "canary") || !strings.Contains(text, "args") {
			t.Errorf("it is told: %s", text)
		}
	}
	if env := fmt.Sprint(after.Object["spec"]); !strings.Contains(env, "plain") || reflect.DeepEqual(before.Object, after.Object) {
		t.Errorf("nobody sees any more what changes: %s", env)
	}
}

// TestMaskOfMalformedSecrets: whatever stands where values are to be is one, in what is there as in what is to be.
func TestMaskOfMalformedSecrets(t *testing.T) {
	t.Parallel()
	const canary = "canary-value"
	for name, data := range map[string]string{
		"Text": "data: " + canary, "List": "data: [" + canary + "]", "Nested": "data: {a: {b: [" + canary + "]}}", "NotEncoded": "data: {a: " + canary + "}",
		"Plain": "stringData: [" + canary + "]", "Applied": "metadata: {annotations: {other: 1, kubectl.kubernetes.io/last-applied-configuration: {a: " + canary + "}}}",
	} {
		secret := read(t, "apiVersion: v1\nkind: Secret\n"+data)
		var none mask
		if masked := fmt.Sprint(none.object(secret).Object); strings.Contains(masked, canary) || !strings.Contains(masked, markPrefix) {
			t.Errorf("%s: one that is there is shown as %s", name, masked)
		}
		m := newMask(nil, []engine.Row{{Object: secret}}, derived{})
		if told := m.text("the value " + canary + " is wrong"); strings.Contains(told, canary) && name != "Applied" {
			t.Errorf("%s: a message tells %s", name, told)
		}
	}
	number := read(t, "apiVersion: v1\nkind: Secret\nstringData: {pin: 73641985}")
	m := newMask(nil, []engine.Row{{Object: number}}, derived{})
	if told := m.text("73641985 is no text"); strings.Contains(told, "73641985") {
		t.Errorf("the number is told: %s", told)
	}
}

// TestMessagesAreMaskedWhole: no part of a value is left where a message is cut.
func TestMessagesAreMaskedWhole(t *testing.T) {
	t.Parallel()
	const canary = "canary-value-that-is-long"
	m := newMask([]string{canary}, nil, derived{})
	for before := maxText - len(canary); before <= maxText; before++ {
		told := m.text(strings.Repeat("x", before) + canary + strings.Repeat("y", maxText))
		if strings.Contains(told, "x"+canary[:1]) || len(told) > maxText {
			t.Fatalf("%d bytes end with %s", len(told), told[before-1:])
		}
	}
}

// TestWhatTheReleaseCallsAnObjectIsTold: also if one of its Secrets names that, as the host of a database. What was substituted is not.
func TestWhatTheReleaseCallsAnObjectIsTold(t *testing.T) {
	t.Parallel()
	const canary = "canary-value"
	secret := read(t, "apiVersion: v1\nkind: Secret\nstringData: {host: keycloak-postgres}")
	m := newMask([]string{canary + "\n"}, []engine.Row{{Object: secret}}, derived{})
	row := engine.Row{Action: engine.ActionRemove}
	row.Ref.Namespace, row.Ref.Name = "of-"+canary, canary+"-x"
	if told, _ := object(t.Context(), nil, row, &m); strings.Contains(told.Name+told.Namespace, canary) || told.Name == told.Namespace {
		t.Errorf("it is called %s/%s", told.Namespace, told.Name)
	}
	row.Ref.Namespace, row.Ref.Name = "identity", "keycloak-postgres"
	if told, _ := object(t.Context(), nil, row, &m); told.Namespace != "identity" || told.Name != "keycloak-postgres" {
		t.Errorf("it is called %s/%s", told.Namespace, told.Name)
	}
}
