package function

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

// TestValuesThatAreMadeCount holds that what functions and aliases make is bounded as what a package has: a value takes a
// hundred times its text in memory.
func TestValuesThatAreMadeCount(t *testing.T) {
	t.Parallel()
	aliases := "  a0: &a0 [x, x]\n"
	for i := range 15 {
		aliases += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	doubling := "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\nreplacements:\n"
	for range 8 {
		doubling += "- source: {kind: ConfigMap, fieldPath: data}\n" +
			"  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.x.a, data.x.b, data.x.c]\n    options: {create: true}\n"
	}
	for name, c := range map[string]struct {
		reason string
		p      kpt.Package
	}{
		"aliases": {
			"Fifteen lines stand for tens of thousands of values.",
			packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", configMap+"data:\n"+aliases),
		},
		"a script": {
			"It makes them in one line.",
			packageOf("Kptfile", kptfileOf("{image: starlark, configMap: {source: '"+
				`ctx.resource_list["items"][0]["data"] = {"a": [0] * 50000}`+"'}}"), "a.yaml", configMap),
		},
		"an expression": {
			"Lists of lists are many values.",
			packageOf("Kptfile", kptfileOf("{image: cel-mutate, configMap: {path: data.x, expression: '"+
				"[0,0,0,0,0,0,0,0].map(a, [0,0,0,0,0,0,0,0].map(b, [0,0,0,0,0,0,0,0].map(c, [0,0,0,0,0,0,0,0].map(d, [0,0,0,0,0,0,0,0]))))'}}"),
				"a.yaml", configMap),
		},
		"replacements": {
			"Each copies what those before it have made.",
			packageOf("Kptfile", kptfileOf("{image: apply-replacements, configPath: r.yaml}"), "r.yaml", doubling,
				"a.yaml", configMap+"data:\n  x: {y: 1}\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := New(Options{MaxNodes: 5_000}).Render(t.Context(), c.p); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s\n%v", c.reason, err)
			}
		})
	}
}

func TestValuesThatAreMadeAreDrawn(t *testing.T) {
	t.Parallel()
	p := packageOf("Kptfile", kptfileOf("{image: starlark, configMap: {source: '"+
		`ctx.resource_list["items"][0]["data"] = {"a": [0] * 100000}`+"'}}", "{image: starlark, configMap: {source: '"+
		`ctx.resource_list["items"][0]["data"]["b"] = [0] * 100000`+"'}}"), "a.yaml", configMap)
	err := memory.New(50<<20, "--budget=50").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		_, _, err := New(Options{}).Render(ctx, p)
		return err
	})
	if !errors.Is(err, memory.ErrBudget) {
		t.Errorf("forty mebibytes of values beside a script that takes twenty: %v", err)
	}
}

// TestGroupsAreNotRepeatedInMemory is alone in its process as long as it runs, as it measures the whole of it.
func TestGroupsAreNotRepeatedInMemory(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	put := strings.Repeat("${1}", 256)
	p := packageOf("Kptfile", kptfileOf("{image: search-replace, configMap: {by-value-regex: 'a(x*)', put-value: '"+put+"'}}"),
		"a.yaml", configMap+"data:\n  k: a"+strings.Repeat("x", 1<<20)+"\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := New(Options{MaxBytes: 4 << 20}).Render(t.Context(), p)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 128<<20 {
		t.Errorf("it took %d MiB", made>>20)
	}
}

// TestSearchingEndsWithItsTime: how long it takes is compared with one value's, of which there are two hundred.
func TestSearchingEndsWithItsTime(t *testing.T) {
	t.Parallel()
	value := "- a" + strings.Repeat("a", 4<<10) + "\n"
	search := func(values int, timeout time.Duration) (time.Duration, error) {
		p := packageOf("Kptfile", kptfileOf("{image: search-replace, configMap: {by-value-regex: '(?:a*x?){150}b', put-value: c}}"),
			"a.yaml", configMap+"list:\n"+strings.Repeat(value, values))
		begun := time.Now()
		_, _, err := New(Options{Timeout: timeout}).Render(t.Context(), p)
		return time.Since(begun), err
	}
	one, err := search(1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if took, err := search(200, one); !errors.Is(err, ErrTimeout) || took > 50*one {
		t.Errorf("it took %v where one value takes %v: %v", took, one, err)
	}
}

func TestNoScriptChangesWhereAnObjectComesFrom(t *testing.T) {
	t.Parallel()
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n" +
		"    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'\n"
	for name, source := range map[string]string{
		"changed": `ctx.resource_list["items"][0]["metadata"]["annotations"]["internal.kpt.dev/upstream-identifier"] = "|ConfigMap|default|b"`,
		"removed": `ctx.resource_list["items"][0]["metadata"].pop("annotations")`,
		"added":   `ctx.resource_list["items"][0]["metadata"]["annotations"]["packages.sluice.dev/variant"] = "x"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf("Kptfile", kptfileOf("{image: starlark, configMap: {source: '"+source+"'}}"), "a.yaml", object)
			if _, _, err := New(Options{}).Render(t.Context(), p); !errors.Is(err, errOrigin) {
				t.Error(err)
			}
		})
	}
}

// writes is a function that writes what it is told to.
type writes string

func (writes) Fingerprint() string { return "1" }

func (writes) Check(string) error { return nil }

func (w writes) Run(ctx context.Context, call Call) error { return call.Output(ctx, []byte(w)) }

func TestTextsThatAFunctionWritesAreDrawn(t *testing.T) {
	t.Parallel()
	output := outputOf("", item(0, "a.yaml", "  name: a\ndata:\n  x: "+strings.Repeat("x", 8<<20)+"\n"))
	p := packageOf("Kptfile", kptfileOf(mine), "a.yaml", configMap)
	err := memory.New(12<<20, "--budget=12").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		_, _, err := New(Options{Custom: writes(output)}).Render(ctx, p)
		return err
	})
	if !errors.Is(err, memory.ErrBudget) {
		t.Errorf("to read eight mebibytes takes twice as much: %v", err)
	}
}

func TestNoFunctionOfOthersChangesWhereAnObjectComesFrom(t *testing.T) {
	t.Parallel()
	output := outputOf("", item(0, "a.yaml", "    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|b'\n  name: a\n"))
	p := packageOf("Kptfile", kptfileOf(mine), "a.yaml", configMap)
	if _, _, err := New(Options{Custom: writes(output)}).Render(t.Context(), p); !errors.Is(err, errOrigin) {
		t.Error(err)
	}
}
