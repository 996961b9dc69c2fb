package cli

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// FuzzFlow: what is offered is read as what it is, whatever a channel or range is called.
func FuzzFlow(f *testing.F) {
	for _, text := range []string{"fast", ">=1.0.0 <2.0.0 || ^2.0.0", "1.0.0", "1.x", "null", "true", "1", "a: b", "a, b", "a #b", "*", "'", "\"\\", "\x1b[31m", "\u202e", " a ", "-", "~1.0.0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("JSON has no such strings")
		}
		want := modulesv1.ModuleRequest{Name: "foo", Channel: text, Latest: true, Prereleases: &modulesv1.Prereleases{Policy: "Listed", Identifiers: []string{text}}}
		var got modulesv1.ModuleRequest
		if err := yaml.UnmarshalStrict([]byte(flow(want)), &got); err != nil {
			t.Fatalf("%s: %v", flow(want), err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", flow(want), diff)
		}
	})
}
