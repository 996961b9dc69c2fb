package function

import (
	"strings"
	"testing"
)

func TestWhatAScriptReportsIsShort(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"results": `m = "x" * (1 << 20)` + "\n" + `ctx.resource_list["results"] = [{"severity": "error", "message": m}] * 300`,
		"fail":    `fail("x" * (1 << 20))`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf("Kptfile", kptfileOf("{image: starlark, configPath: s.yaml}"), "a.yaml", configMap, "s.yaml",
				"apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata: {name: s}\nsource: |\n  "+strings.ReplaceAll(source, "\n", "\n  ")+"\n")
			if _, _, err := New(Options{}).Render(t.Context(), p); err == nil || len(err.Error()) > 16<<10 {
				t.Errorf("the error has %d bytes", len(errorText(err)))
			}
		})
	}
}
