package wasm_test

import (
	"runtime"
	"testing"

	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
	"sluice.dev/sluice/internal/memory"
)

// TestTheStackIsMemory is alone in its process as long as it runs, as it measures the whole of it.
func TestTheStackIsMemory(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	e := engine(t, wasm.Options{Memory: memory.New(8<<20, "--budget=8")})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := run(t.Context(), e, wasmtest.Recurse(), ""); err == nil {
		t.Error("there is no error")
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
		t.Errorf("a recursion took %d MiB of a budget of 8", made>>20)
	}
}
