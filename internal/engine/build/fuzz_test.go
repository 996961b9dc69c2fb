package build_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine/build"
)

// noWorker is a builder whose worker does nothing, so that only what is done without one is fuzzed.
func noWorker() *build.Builder { return build.New(build.Options{Worker: []string{"/bin/false"}}) }

// FuzzDecode shows that manifests become objects that survive JSON, or an error of ours.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(configMap("a", "data: {a: '1'}\n") + "---\n" + deployment))
	f.Add([]byte(laughs()))
	f.Add([]byte("%YAML 1.1\n---\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}, null]\n...\n"))
	f.Add([]byte("a: &a {<<: *a}\n"))
	f.Add([]byte("? [a]\n: !!binary x\n"))
	f.Add([]byte("--- |\n ---\n---\t\n"))
	builder := noWorker()
	f.Fuzz(func(t *testing.T, content []byte) {
		request := build.Request{Tree: fstest.MapFS{"a.yaml": {Data: content}}}
		objects, err := objectsOf(builder.Build(t.Context(), request))
		if err != nil {
			for _, known := range []error{build.ErrDocument, build.ErrEmpty, build.ErrLimit, build.ErrWorker} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("an error of no kind: %v", err)
		}
		again, err := objectsOf(builder.Build(t.Context(), request))
		check(t, err)
		if build.RenderDigest(objects) != build.RenderDigest(again) {
			t.Fatal("another result for the same request")
		}
		for _, object := range objects {
			raw, err := json.Marshal(object.Object)
			check(t, err)
			var back unstructured.Unstructured
			check(t, back.UnmarshalJSON(raw))
			if build.Hash(&back) != build.Hash(object) {
				t.Fatalf("%s is not what it was", raw)
			}
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Fatalf("%s is incomplete", raw)
			}
		}
	})
}

// FuzzSubstitute shows that whatever a value is, it makes no structure: a scalar stays one scalar, and a quoted one text.
func FuzzSubstitute(f *testing.F) {
	for _, value := range []string{"", "a", "1", "true", "a\nb: c", "{a: b}", "- a", "\"", "'", "# x", "${OTHER}", "*a", "&a", "!!map {}", "---\nkind: X", "\x00", "\u2028", "~", "1e9999", "0x", ".inf", "<<"} {
		f.Add("plain ${V}", value)
		f.Add("${V}", value)
		f.Add("${V:-${V}}$${V}", value)
	}
	builder := noWorker()
	f.Fuzz(func(t *testing.T, template, value string) {
		quoted, err := json.Marshal(template)
		if err != nil || strings.ContainsAny(template, "\u007f\u0085\ufeff\ufffd") || !json.Valid(quoted) {
			return
		}
		content := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nquoted: " + string(quoted) + "\nplain: ${V}\n"
		objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: fstest.MapFS{"a.yaml": {Data: []byte(content)}}, Substitute: map[string]string{"V": value}}))
		if err != nil {
			return
		}
		object := objects[0].Object
		if len(objects) != 1 || len(object) != 5 {
			t.Fatalf("%q made structure: %v", value, object)
		}
		text, ok := object["quoted"].(string)
		if !ok || template == "${V}" && text != value {
			t.Fatalf("%q of %q made %v", template, value, object["quoted"])
		}
		switch plain := object["plain"].(type) {
		case string:
			if diff := cmp.Diff(value, plain); diff != "" {
				t.Fatal(diff)
			}
		case nil, bool, int64:
		case float64:
			if math.IsNaN(plain) || math.IsInf(plain, 0) {
				t.Fatalf("%q made %v", value, plain)
			}
		default:
			t.Fatalf("%q made a %T", value, plain)
		}
	})
}
