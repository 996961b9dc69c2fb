package function

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

// TestFunctionsDoNotChooseHowTheyRender so that the order of a pipeline says nothing about it.
func TestFunctionsDoNotChooseHowTheyRender(t *testing.T) {
	t.Parallel()
	const replacements = "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\nreplacements:\n" +
		"- sourceValue: kpt\n  targets:\n  - select: {kind: Kptfile}\n    fieldPaths: ['metadata.annotations.[functions.sluice.dev/compat]']\n    options: {create: true}\n"
	p := packageOf(
		"Kptfile", kptfileOf("{image: apply-replacements, configPath: r.yaml}", "{image: ensure-name-substring, configMap: {prepend: b}}"),
		"r.yaml", replacements, "a.yaml", strings.Replace(configMap, "name: a", "name: abc", 1))
	got, _, err := New(Options{}).Render(t.Context(), p)
	if err != nil || !strings.Contains(string(got["a.yaml"].Content), "name: babc") {
		t.Errorf("%s %v", got["a.yaml"].Content, err)
	}
	if !strings.Contains(string(got["Kptfile"].Content), compatAnnotation) {
		t.Error("the annotation was not written")
	}
}

// TestTheRootChoosesForAllBeneathIt and a package beneath it does not.
func TestTheRootChoosesForAllBeneathIt(t *testing.T) {
	t.Parallel()
	plain := kptfileOf("{image: ensure-name-substring, configMap: {prepend: b}}")
	asking := strings.Replace(plain, "  name: app\n", "  name: app\n  annotations: {functions.sluice.dev/compat: kpt}\n", 1)
	object := strings.Replace(configMap, "name: a", "name: abc", 1)
	for name, c := range map[string]struct{ root, beneath, want string }{
		"the root": {asking, plain, "name: abc"}, "beneath": {plain, asking, "name: babc"},
	} {
		got, _, err := New(Options{}).Render(t.Context(), packageOf("Kptfile", c.root, "sub/Kptfile", c.beneath, "sub/a.yaml", object))
		if err != nil || !strings.Contains(string(got["sub/a.yaml"].Content), c.want) {
			t.Errorf("%s: %s %v", name, got["sub/a.yaml"].Content, err)
		}
	}
}

// TestWhatIsNotInTheTableIsTheSameInBothModes: golden packages whose functions the documentation does not list as different come out the
// same where the root asks for what kpt does, and those with a golden directory of both modes as well.
func TestWhatIsNotInTheTableIsTheSameInBothModes(t *testing.T) {
	t.Parallel()
	differs := regexp.MustCompile(`image: ['"]?(?:[^ '"]*/)?(set-namespace|set-labels|apply-setters|create-setters|ensure-name-substring|search-replace|set-image)\b`)
	compared := map[string]int{}
	for _, name := range goldens(t) {
		in := read(t, filepath.Join(name, "in"))
		root, has := in["Kptfile"], false
		for path, file := range in {
			has = has || filepath.Base(path) == "Kptfile" && differs.Match(file.Content)
		}
		if has || strings.Contains(string(root.Content), compatAnnotation) != strings.HasPrefix(filepath.Base(name), "compat-") {
			continue
		}
		other := maps.Clone(in)
		asked := strings.Replace(string(root.Content), "    "+compatAnnotation+": kpt\n", "", 1)
		if asked == string(root.Content) {
			asked = strings.Replace(asked, "metadata:\n  name: app\n", "metadata:\n  name: app\n  annotations:\n    "+compatAnnotation+": kpt\n", 1)
			asked = strings.Replace(asked, ": kpt\n  annotations:\n", ": kpt\n", 1)
		} else {
			asked = strings.Replace(asked, "  annotations:\npipeline", "pipeline", 1)
		}
		if asked == string(root.Content) {
			continue // It has no Kptfile that could ask.
		}
		other["Kptfile"] = kpt.File{Content: []byte(asked), Mode: root.Mode}
		want, wantResults, wantErr := New(Options{Schemas: schemas(t)}).Render(t.Context(), in)
		got, results, err := New(Options{Schemas: schemas(t)}).Render(t.Context(), other)
		if (err == nil) != (wantErr == nil) || resultText(results) != resultText(wantResults) {
			t.Errorf("%s: %v and %v\n%s\n%s", name, wantErr, err, resultText(wantResults), resultText(results))
			continue
		}
		delete(want, "Kptfile")
		delete(got, "Kptfile")
		if diff := cmp.Diff(contents(want), contents(got)); diff != "" {
			t.Errorf("%s (-as it is +in the other mode):\n%s", name, diff)
		}
		for _, function := range []string{"upsert-resource", "starlark", "set-annotations", "apply-replacements"} {
			if strings.Contains(filepath.Base(name), function) {
				compared[function]++
			}
		}
	}
	if len(compared) != 4 {
		t.Errorf("compared were %v", compared)
	}
}
