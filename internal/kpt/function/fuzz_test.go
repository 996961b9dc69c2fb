package function

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRender holds that no object breaks a function, and that rendering what was rendered changes nothing more.
func FuzzRender(f *testing.F) {
	seeds, err := filepath.Glob("testdata/render/*/in/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		text, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	const replacements = `apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata: {name: r}
replacements:
- sourceValue: x
  targets:
  - select: {name: .*}
    fieldPaths: [spec.a.0.b]
    options: {create: true}
`
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, entry := range []string{
			"{image: set-namespace, configMap: {namespace: prod}}",
			"{image: set-namespace, configMap: {namespace: prod, namespaceMatcher: example}}",
			"{image: set-labels, configMap: {app: shop, other: \"1\"}}",
			"{image: set-annotations, configMap: {app: shop}}",
			"{image: apply-replacements, configPath: r.yaml}",
			"{image: set-image, configMap: {name: nginx, newTag: \"2\"}}",
			"{image: search-replace, configMap: {by-path: \"**.a[*]\", by-value-regex: \"(.+)-v1\", put-value: \"${1}\", put-comment: \"kpt-set: ${x}\"}}",
			"{image: cel-mutate, configMap: {path: spec.a.*.b, expression: \"'x'\"}}",
			"{image: starlark, configMap: {source: \"for r in ctx.resource_list['items']: r['added'] = [1, {'a': 'yes'}]\"}}",
		} {
			p := packageOf("Kptfile", kptfileOf(entry), "r.yaml", replacements, "a.yaml", string(text))
			once, _, err := New(Options{}).Render(t.Context(), p)
			if errors.Is(err, ErrPanic) {
				t.Fatalf("%s: %v", entry, err)
			}
			if err != nil {
				continue
			}
			twice, _, err := New(Options{}).Render(t.Context(), once)
			if err != nil {
				t.Fatalf("%s makes\n%s\nwhich fails: %v", entry, once["a.yaml"].Content, err)
			}
			if diff := cmp.Diff(contents(once), contents(twice)); diff != "" {
				t.Errorf("%s: rendering again changes (-once +twice):\n%s", entry, diff)
			}
		}
	})
}
