package function

import (
	"strings"
	"testing"
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
