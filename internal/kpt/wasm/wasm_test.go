package wasm_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
	"sluice.dev/sluice/internal/memory"
)

// engine is closed with the test.
func engine(t *testing.T, options wasm.Options) *wasm.Engine {
	t.Helper()
	e, err := wasm.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// run runs the module once and returns what it writes.
func run(ctx context.Context, e *wasm.Engine, module []byte, input string) (output string, err error) {
	err = e.Run(ctx, wasm.Job{
		Module: string(module), Load: func(context.Context) ([]byte, error) { return module, nil }, Namespace: "team", Input: []byte(input),
		Output: func(_ context.Context, written []byte) error {
			output = string(written)
			return nil
		},
	})
	return output, err
}

func TestAModuleReadsAndWrites(t *testing.T) {
	t.Parallel()
	e := engine(t, wasm.Options{})
	input := strings.Repeat("what?", 10_000)
	for range 2 {
		output, err := run(t.Context(), e, wasmtest.Replace('?', '!'), input)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Repeat("what!", 10_000), output); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSleepingTakesNoTime(t *testing.T) {
	t.Parallel()
	output, err := run(t.Context(), engine(t, wasm.Options{}), wasmtest.Sleep("awake"), "")
	if err != nil || output != "awake" {
		t.Error(output, err)
	}
}

func TestWhatAModuleMayNotDo(t *testing.T) {
	t.Parallel()
	small := wasm.Options{MaxMemory: 4 << 20, MaxOutput: 1 << 20, MaxModule: 64 << 10, Timeout: time.Minute}
	short := small
	short.Timeout = 50 * time.Millisecond
	for name, c := range map[string]struct {
		reason  string
		options wasm.Options
		module  []byte
		is      error
		says    string
	}{
		"loop":      {"It would never end.", short, wasmtest.Loop(), wasm.ErrTimeout, "more than 50ms"},
		"memory":    {"It takes all that there is.", small, wasmtest.Allocate(), wasm.ErrTooMuch, "bytes of memory, and 4194304 are allowed"},
		"table":     {"Tables are memory that nobody counts.", small, wasmtest.GrowTable(), nil, "it broke: "},
		"recursion": {"The stack is memory as well.", small, wasmtest.Recurse(), nil, "stack overflow"},
		"trap":      {"It breaks.", small, wasmtest.Break(), nil, "it broke: "},
		"output":    {"It writes without end.", small, wasmtest.Print(1), wasm.ErrTooMuch, "it wrote more than 1048576 bytes"},
		"words":     {"It talks without end.", small, wasmtest.Print(2), wasm.ErrTooMuch, "bytes for people"},
		"exit":      {"It failed, and says why.", small, wasmtest.Exit(3, "no\nway\x1b"), nil, "it exited with 3: no; way"},
		"network":   {"There is none.", small, wasmtest.Ask("wasi_snapshot_preview1", "sock_accept"), wasm.ErrModule, `asks for "sock_accept"`},
		"host":      {"There is none.", small, wasmtest.Ask("env", "system"), wasm.ErrModule, `asks for "system" of "env"`},
		"no wasm":   {"It is a script.", small, []byte("#!/bin/sh\nrm -rf /\n"), wasm.ErrModule, "no WebAssembly"},
		"component": {"It is of another format.", small, []byte("\x00asm\x0d\x00\x01\x00"), wasm.ErrModule, "components"},
		"huge":      {"It is too large to compile.", small, make([]byte, 64<<10+1), wasm.ErrModule, "65537 bytes, and 65536 are allowed"},
		"library":   {"It has nothing to run.", small, wasmtest.Module{Pages: 1, Table: -1, Library: true}.Bytes(), wasm.ErrModule, "_start"},
		"begins huge": {
			"It has more memory than it may from its beginning.", small, wasmtest.Module{Pages: 100, Table: -1}.Bytes(), wasm.ErrModule, "begins with 6553600 bytes",
		},
		"variables": {
			"Six bytes would have four thousand million variables.", small,
			wasmtest.Module{Pages: 1, Table: -1, Locals: 1<<32 - 1}.Bytes(), wasm.ErrModule, "4294967295 variables",
		},
		"elements": {
			"A few bytes would have a table of a gigabyte.", small, wasmtest.Module{Pages: 1, Table: 1 << 27}.Bytes(), wasm.ErrModule, "134217728 elements",
		},
		"cut off": {"Half of it is missing.", small, wasmtest.Loop()[:30], wasm.ErrModule, "cut off"},
		"wrong":   {"Its code is none.", small, wasmtest.Module{Pages: 1, Table: -1, Body: []byte{0x6a}}.Bytes(), wasm.ErrModule, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), engine(t, c.options), c.module, "")
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s\n%v", c.reason, err)
			}
			if err != nil && (len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Errorf("%q", err)
			}
		})
	}
}

func TestWhoWaitsNoLongerStopsTheModule(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
	if _, err := run(ctx, engine(t, wasm.Options{Timeout: time.Hour}), wasmtest.Loop(), ""); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestMemoryIsDrawn(t *testing.T) {
	t.Parallel()
	budget := memory.New(8<<20, "--budget=8")
	e := engine(t, wasm.Options{Memory: budget})
	if _, err := run(t.Context(), e, wasmtest.Allocate(), ""); !errors.Is(err, memory.ErrBudget) || !strings.Contains(err.Error(), "--budget=8") {
		t.Error(err)
	}
	// All of it was given back.
	if output, err := run(t.Context(), e, wasmtest.Replace('a', 'b'), "a"); err != nil || output != "b" {
		t.Error(output, err)
	}
	err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error { return memory.Draw(ctx, 8<<20) })
	if err != nil {
		t.Error(err)
	}
}

func TestCompiledModulesAreKeptAsLongAsThereIsRoom(t *testing.T) {
	t.Parallel()
	one, other := wasmtest.Write("one"), wasmtest.Write("other")
	e := engine(t, wasm.Options{KeptBytes: 5 * int64(max(len(one), len(other)))})
	loads := 0
	for _, module := range [][]byte{one, one, other, other, one} {
		err := e.Run(t.Context(), wasm.Job{
			Module: string(module), Namespace: "team",
			Load: func(context.Context) ([]byte, error) {
				loads++
				return module, nil
			},
			Output: func(context.Context, []byte) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if loads != 3 {
		t.Errorf("they were loaded %d times", loads)
	}
	if _, err := run(t.Context(), e, wasmtest.Write(strings.Repeat("long", 100)), ""); !errors.Is(err, memory.ErrBudget) {
		t.Error(err)
	}
}

// TestALoopHoldsUpNoOtherNamespaceForLong: where what does little takes longer than the timeout, the machine has much else to do, and a
// longer one tells.
func TestALoopHoldsUpNoOtherNamespaceForLong(t *testing.T) {
	t.Parallel()
	err := wasm.ErrTimeout
	for timeout := 200 * time.Millisecond; errors.Is(err, wasm.ErrTimeout) && timeout < 10*time.Second; timeout *= 3 {
		err = betweenLoops(t, timeout)
	}
	if err != nil {
		t.Error(err)
	}
}

// betweenLoops runs a module three times beside others of another namespace that never end by themselves.
func betweenLoops(t *testing.T, timeout time.Duration) error {
	t.Helper()
	e := engine(t, wasm.Options{Timeout: timeout})
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	for range 4 {
		loops.Go(func() {
			for ctx.Err() == nil {
				_ = e.Run(ctx, wasm.Job{
					Module: "loop", Load: func(context.Context) ([]byte, error) { return wasmtest.Loop(), nil }, Namespace: "loops",
				})
			}
		})
	}
	begun := time.Now()
	for range 3 {
		if _, err := run(ctx, e, wasmtest.Replace('a', 'b'), "a"); err != nil {
			return err
		}
	}
	if took := time.Since(begun); took > 150*timeout {
		t.Errorf("three runs between loops of %v took %v", timeout, took)
	}
	return nil
}

func FuzzModules(f *testing.F) {
	for _, module := range [][]byte{
		wasmtest.Replace('a', 'b'), wasmtest.Write("x"), wasmtest.Exit(1, "x"), wasmtest.GrowTable(), wasmtest.Ask("env", "x"), wasmtest.Recurse(),
	} {
		f.Add(module)
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		e := engine(t, wasm.Options{MaxMemory: 1 << 20, MaxOutput: 1 << 20, MaxModule: 4 << 10, Timeout: 100 * time.Millisecond})
		output, err := run(t.Context(), e, module, "input")
		if err != nil && output != "" {
			t.Error("a module that failed has an outcome")
		}
	})
}
