package function

import (
	"runtime"
	"strings"
	"testing"
)

// TestWhatAScriptReportsIsShort is alone in its process as long as it runs, as it measures the whole of it.
func TestWhatAScriptReportsIsShort(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	source := `m = "x" * (1 << 20)` + "\n" + `ctx.resource_list["results"] = [{"severity": "error", "message": m}] * 300`
	p := packageOf("Kptfile", kptfileOf("{image: starlark, configPath: s.yaml}"), "a.yaml", configMap, "s.yaml",
		"apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata: {name: s}\nsource: |\n  "+strings.ReplaceAll(source, "\n", "\n  ")+"\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := New(Options{}).Render(t.Context(), p)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("there is no error")
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 128<<20 {
		t.Errorf("it took %d MiB", made>>20)
	}
}
