package function

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/kpt"
)

// packageOf is a package of one folder; names of files come before their texts.
func packageOf(texts ...string) kpt.Package {
	p := kpt.Package{}
	for i := 0; i+1 < len(texts); i += 2 {
		p[texts[i]] = kpt.File{Content: []byte(texts[i+1]), Mode: 0o644}
	}
	return p
}

// kptfileOf has the entries for its mutators.
func kptfileOf(entries ...string) string {
	return "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators:\n  - " +
		strings.Join(entries, "\n  - ") + "\n"
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	doubling := "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\nreplacements:\n"
	for range 60 {
		// Two fields get all of the data so far.
		doubling += "- source: {kind: ConfigMap, fieldPath: data}\n" +
			"  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.x.a, data.x.b]\n    options: {create: true}\n"
	}
	setters := strings.Repeat("  - # kpt-set: "+strings.Repeat("${a}", maxNames)+"\n", 100)
	setters = strings.ReplaceAll(setters, "- #", "- x #")
	bomb := "  a0: &a0 [x]\n"
	for i := range 60 {
		bomb += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for name, c := range map[string]struct {
		reason  string
		options Options
		p       kpt.Package
	}{
		"before": {
			reason: "What is too large is not read.", options: Options{MaxBytes: 100},
			p: packageOf("Kptfile", kptfileOf("image: set-labels"), "data", strings.Repeat("x", 100)),
		},
		"values": {
			reason: "A list of nothing takes a hundred times its text in memory.", options: Options{MaxNodes: 10_000},
			p: packageOf("Kptfile", kptfileOf("image: set-labels"), "a.yaml", configMap+"data: ["+strings.Repeat(",", 10_000)+"]\n"),
		},
		"lists in lists": {
			reason: "Each of them is a value.", options: Options{MaxNodes: 10_000},
			p: packageOf("Kptfile", kptfileOf("image: set-labels"), "a.yaml", configMap+"data:\n  "+strings.Repeat("- ", 10_000)+"\n"),
		},
		"objects": {
			reason: "Every object costs.", options: Options{MaxItems: 1},
			p: packageOf("Kptfile", kptfileOf("image: set-labels"), "a.yaml", configMap),
		},
		"replacements": {
			reason: "Sixty lines would make 2^60 values.", options: Options{MaxBytes: 1 << 20},
			p: packageOf("Kptfile", kptfileOf("{image: apply-replacements, configPath: r.yaml}"), "r.yaml", doubling,
				"a.yaml", configMap+"data:\n  x: {y: 1}\n"),
		},
		"setters": {
			reason: "A long value in many places is long.", options: Options{MaxBytes: 1 << 20},
			p: packageOf("Kptfile", kptfileOf("{image: apply-setters, configMap: {a: "+strings.Repeat("v", 1000)+"}}"),
				"a.yaml", configMap+"spec:\n"+setters),
		},
		"aliases": {
			reason: "Sixty aliases stand for 2^60 values.", options: Options{},
			p: packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", configMap+"data:\n"+bomb),
		},
		"objects that are put in": {
			reason: "They count like those that were there.", options: Options{MaxItems: 4},
			p: packageOf("Kptfile", kptfileOf("{image: upsert-resource, configPath: u.yaml}"), "u.yaml", upsertOf(3)),
		},
		"an object that is put in again and again": {
			reason: "It is in the package as often as there are functions that put it there.", options: Options{MaxBytes: 8 << 10},
			p: packageOf("Kptfile", kptfileOf("{image: upsert-resource, configPath: u.yaml}", "{image: upsert-resource, configPath: v.yaml}"),
				"u.yaml", upsertOf(30), "v.yaml", strings.ReplaceAll(upsertOf(30), "name: n", "name: m")),
		},
		"comments": {
			reason: "A comment with long names is long.", options: Options{MaxBytes: 4 << 10},
			p: packageOf("Kptfile", kptfileOf("{image: create-setters, configMap: {"+strings.Repeat("n", 500)+": v}}"),
				"a.yaml", configMap+"spec:\n"+strings.Repeat("- v\n", 50)),
		},
		"an expression": {
			reason: "Lists in lists can stand for more than there is room for.", options: Options{MaxBytes: 64 << 10},
			p: packageOf("Kptfile", kptfileOf("{image: cel-mutate, configMap: {path: data.x, expression: '"+
				"resources.map(a, resources.map(b, resources))'}}"), "a.yaml", strings.Repeat("---\n"+configMap, 25)),
		},
		"a script": {
			reason: "What it makes counts as what functions write.", options: Options{MaxBytes: 1 << 20},
			p: packageOf("Kptfile", kptfileOf("{image: starlark, configMap: {source: '"+
				`ctx.resource_list["items"][0]["data"] = {"a": "x" * (2 << 20)}`+"'}}"), "a.yaml", configMap),
		},
		"labels": {
			reason: "What every object gets adds up.", options: Options{MaxBytes: 4 << 10},
			p: packageOf("Kptfile", kptfileOf("{image: set-annotations, configMap: {a: "+strings.Repeat("v", 2000)+"}}"),
				"a.yaml", configMap+"---\n"+configMap),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, _, err := New(c.options).Render(t.Context(), c.p)
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s\n%v", c.reason, err)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// upsertOf is a configuration with so many objects.
func upsertOf(count int) string {
	items := ""
	for i := range count {
		items += fmt.Sprintf("- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: n%d}\n  data: {a: b, text: %s}\n", i, strings.Repeat("x", 40))
	}
	return "apiVersion: v1\nkind: List\nmetadata:\n  name: l\n  annotations: {config.kubernetes.io/local-config: \"true\"}\nitems:\n" + items
}

func TestAnAliasInItselfIsAnError(t *testing.T) {
	t.Parallel()
	p := packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", configMap+"data: &a\n  b: *a\n")
	if _, _, err := New(Options{}).Render(t.Context(), p); err == nil {
		t.Error("there is no error")
	}
}

func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	p := packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", configMap)
	if _, _, err := New(Options{Timeout: time.Nanosecond}).Render(t.Context(), p); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

func TestWhoHasNoTimeGetsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, _, err := New(Options{}).Render(ctx, packageOf("Kptfile", kptfileOf("image: set-labels"))); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestAKptfileThatGrowsByItselfEnds(t *testing.T) {
	t.Parallel()
	p := packageOf("Kptfile", kptfileOf("{image: apply-replacements, configPath: r.yaml}"), "r.yaml",
		"apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\nreplacements:\n"+
			"- source: {kind: Kptfile, fieldPath: pipeline.mutators.0}\n  targets:\n  - select: {kind: Kptfile}\n    fieldPaths: ["+
			manyPaths()+"]\n    options: {create: true}\n")
	_, results, err := New(Options{}).Render(t.Context(), p)
	if err != nil || len(results) != 51 {
		t.Error(len(results), err)
	}
}

func manyPaths() string {
	paths := []string{}
	for i := range 50 {
		paths = append(paths, fmt.Sprintf("pipeline.mutators.%d", i+1))
	}
	return strings.Join(paths, ", ")
}
