package function

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
)

// modules are functions by their images.
type modules struct {
	engine  *wasm.Engine
	modules map[string][]byte
	inputs  []string
}

// imageOf is one that is known by its content.
func imageOf(name string) string {
	return "registry.example.com/functions/" + name + "@sha256:" + strings.Repeat("a", 64)
}

func (*modules) Fingerprint() string { return "1" }

func (m *modules) Check(image string) error {
	if m.modules[image] == nil {
		return fmt.Errorf("%w: %q", ErrUnknownFunction, image)
	}
	return nil
}

func (m *modules) Run(ctx context.Context, call Call) error {
	m.inputs = append(m.inputs, string(call.Input))
	return m.engine.Run(ctx, wasm.Job{
		Module: call.Image, Load: func(context.Context) ([]byte, error) { return m.modules[call.Image], nil }, Input: call.Input, Output: call.Output,
	})
}

// custom renders the package with the module as its function "mine".
func custom(t *testing.T, module []byte, p kpt.Package) (kpt.Package, []Result, *modules, error) {
	t.Helper()
	engine, err := wasm.New(wasm.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	m := &modules{engine: engine, modules: map[string][]byte{imageOf("mine"): module}}
	made, results, err := New(Options{Custom: m, MaxItems: 100, MaxNodes: 10_000}).Render(t.Context(), p)
	return made, results, m, err
}

// outputOf is an output with the items and more fields.
func outputOf(fields string, items ...string) string {
	text := "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n" + fields + "items:\n"
	for _, item := range items {
		text += "- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") + "\n"
	}
	return text
}

// item is an object of the number that the function was given; less than none is a new one.
func item(id int, file, rest string) string {
	annotations := fmt.Sprintf("    internal.config.kubernetes.io/path: %s\n", file)
	if id >= 0 {
		annotations += fmt.Sprintf("    config.kubernetes.io/path: %s\n    internal.config.kubernetes.io/id: '%d'\n", file, id)
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n" + annotations + rest
}

const (
	mine  = "{image: '" + "registry.example.com/functions/mine@sha256:" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + "', selectors: [{kind: ConfigMap}]}"
	first = "# above\napiVersion: v1\nkind: ConfigMap\nmetadata:\n    name: a # its name\ndata:\n    z: \"1\" # one\n    list:\n    - {name: x, v: 1} # x\n    - name: y\n      v: 2 # y\n    b: two\n"
	other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
)

func TestWhatAFunctionOfOthersReads(t *testing.T) {
	t.Parallel()
	p := packageOf("Kptfile", kptfileOf(strings.Replace(mine, "}]}", "}], configPath: f.yaml}", 1)), "a.yaml", first,
		"sub/b.yaml", other, "f.yaml", "apiVersion: example.com/v1\nkind: Shout\nmetadata:\n  name: f\nloud: yes\n")
	made, results, m, err := custom(t, wasmtest.Replace('\x00', '\x00'), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, made); diff != "" {
		t.Errorf("what is written as it was read changes nothing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Result{{Function: "mine"}}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	want := `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- # above
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: a # its name
    annotations:
      config.kubernetes.io/index: '0'
      config.kubernetes.io/path: 'a.yaml'
      internal.config.kubernetes.io/id: '0'
      internal.config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'a.yaml'
  data:
    z: "1" # one
    list:
    - {name: x, v: 1} # x
    - name: y
      v: 2 # y
    b: two
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other, annotations: {config.kubernetes.io/index: '0', config.kubernetes.io/path: 'sub/b.yaml', internal.config.kubernetes.io/id: '1', internal.config.kubernetes.io/index: '0', internal.config.kubernetes.io/path: 'sub/b.yaml'}}
functionConfig:
  apiVersion: example.com/v1
  kind: Shout
  metadata:
    name: f
  loud: yes
`
	if diff := cmp.Diff([]string{want}, m.inputs); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestWhatAFunctionOfOthersMakes(t *testing.T) {
	t.Parallel()
	begin := func(more ...string) kpt.Package {
		return packageOf(append([]string{"Kptfile", kptfileOf(mine), "a.yaml", first, "b.yaml", other}, more...)...)
	}
	b := item(1, "b.yaml", "  name: other\n")
	for name, c := range map[string]struct {
		reason string
		output string
		want   map[string]string
	}{
		"change": {
			"What it did not change stays as it was written, in whatever order it writes it.",
			outputOf("", item(0, "a.yaml", "  name: a\ndata:\n  b: three\n  z: \"1\"\n  list:\n  - {name: new, v: 0}\n  - {v: 3, name: \"y\"}\n  new: \"4\"\n"), b),
			map[string]string{"a.yaml": strings.NewReplacer("b: two", "b: three\n    new: \"4\"", "{name: x, v: 1}", "{name: new, v: 0}", "v: 2 # y", "v: 3 # y").Replace(first)},
		},
		"add": {
			"Where it says, or else in a file named for it.",
			outputOf("", item(0, "a.yaml", first[strings.Index(first, "    name: a"):]), b, item(-1, "new/c.yaml", "  name: c\n"), "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n", item(-1, "b.yaml", "  name: d\n")),
			map[string]string{
				"new/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n", "secret_s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n",
				"b.yaml": other + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d\n",
			},
		},
		"remove": {"What is missing is gone, and its file with it.", outputOf("", b), map[string]string{"a.yaml": ""}},
		"move": {
			"Who is elsewhere is written there.", outputOf("", b, item(0, "c.yaml", "  name: a\n")),
			map[string]string{"a.yaml": "", "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"},
		},
		"copy": {
			"Of two with one number, the first is the one that was there.",
			outputOf("", item(0, "a.yaml", first[strings.Index(first, "    name: a"):]), b, item(1, "b.yaml", "  name: second\n")),
			map[string]string{"b.yaml": other + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: second\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := begin()
			for file, content := range c.want {
				if want[file] = (kpt.File{Content: []byte(content), Mode: 0o644}); content == "" {
					delete(want, file)
				}
			}
			output := strings.ReplaceAll(c.output, "    name: a # its name", "  name: a")
			made, _, _, err := custom(t, wasmtest.Write(output), begin())
			if err != nil {
				t.Fatalf("%s\n%v\n%s", c.reason, err, output)
			}
			if diff := cmp.Diff(contents(want), contents(made)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestWhatAFunctionOfOthersMayNotDo(t *testing.T) {
	t.Parallel()
	a := item(0, "a.yaml", "  name: a\n")
	kptfile := strings.ReplaceAll(item(-1, "sub/Kptfile", "  name: k\n"), "apiVersion: v1\nkind: ConfigMap", "apiVersion: kpt.dev/v1\nkind: Kptfile")
	results := func(severity string) string {
		return "results:\n- message: too few\n  severity: " + severity + "\n  resourceRef: {kind: ConfigMap, name: a}\n  field: {path: spec.replicas}\n"
	}
	for name, c := range map[string]struct {
		reason string
		module []byte
		says   string
	}{
		"nothing":      {"No output is no list.", wasmtest.Write(""), "its output: it is empty"},
		"no yaml":      {"It is no YAML.", wasmtest.Write("a: [\x01"), "its output: it is no YAML"},
		"no list":      {"It is something else.", wasmtest.Write("apiVersion: v1\nkind: List\nitems: []\n"), `its output: it is "List" of "v1", and has to be a ResourceList of config.kubernetes.io/v1`},
		"two":          {"There is one list.", wasmtest.Write(outputOf("", a) + "---\n" + outputOf("", a)), "more than one document"},
		"more fields":  {"A misspelt field is noticed.", wasmtest.Write(outputOf("itms: []\n", a)), `"itms" is no field`},
		"aliases":      {"Ten lines can stand for a memory full.", wasmtest.Write(outputOf("metadata: {a: &a [1], b: *a}\n", a)), "it has aliases"},
		"twice":        {"Readers do not agree which counts.", wasmtest.Write(outputOf("", a+"  name: b\n")), "is there twice"},
		"no object":    {"An item is an object.", wasmtest.Write(outputOf("", "a: b")), "items[0] of its output"},
		"many objects": {"There are too many.", wasmtest.Write(outputOf("", strings.Split(strings.Repeat("a: b|", 101)+"a: b", "|")...)), "it has 102 objects, and 100 are allowed"},
		"many values":  {"Two bytes are a value.", wasmtest.Write(outputOf("", "a: ["+strings.Repeat(",", 6000)+"]")), "values, and 10000 are allowed"},
		"outside":      {"It writes beside the package.", wasmtest.Write(outputOf("", a, item(-1, "../x.yaml", "  name: x\n"))), `"../x.yaml" is not in the package`},
		"absolute":     {"It writes anywhere.", wasmtest.Write(outputOf("", a, item(-1, "/etc/x.yaml", "  name: x\n"))), `"/etc/x.yaml" is not in the package`},
		"git":          {"It writes what Git would run.", wasmtest.Write(outputOf("", a, item(-1, ".GIT/x.yaml", "  name: x\n"))), "cannot be in a repository"},
		"no file":      {"Objects stand in YAML.", wasmtest.Write(outputOf("", a, item(-1, "run.sh", "  name: x\n"))), "holds no objects"},
		"link":         {"It writes through a link.", wasmtest.Write(outputOf("", a, item(-1, "link.yaml", "  name: x\n"))), "is not read"},
		"under a file": {"A file is no folder.", wasmtest.Write(outputOf("", a, item(-1, "a.yaml/x.yaml", "  name: x\n"))), "is not read"},
		"below":        {"The package beneath is another one's.", wasmtest.Write(outputOf("", a, item(-1, "sub/x.yaml", "  name: x\n"))), "of another package"},
		"new package":  {"Packages are made by people.", wasmtest.Write(outputOf("", a, kptfile)), "may not make a Kptfile"},
		"becomes one":  {"Packages are made by people.", wasmtest.Write(outputOf("", strings.Replace(a, "v1\nkind: ConfigMap", "kpt.dev/v1\nkind: Kptfile", 1))), "neither make nor remove a Kptfile"},
		"results":      {"It says what is wrong.", wasmtest.Write(outputOf(results("error"), a)), "mine: it says: too few; kind ConfigMap; name a; path spec.replicas"},
		"exit":         {"It ends with an error.", wasmtest.Exit(1, "panic: no"), "mine: it exited with 1: panic: no"},
		"breaks":       {"It breaks.", wasmtest.Break(), "mine: it broke: wasm error: unreachable"},
		"no module":    {"It is a script.", []byte("#!/bin/sh"), "mine: the module cannot be run: it is no WebAssembly"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf("Kptfile", kptfileOf(mine), "a.yaml", first, "sub/Kptfile", "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\n")
			p["link.yaml"] = kpt.File{Content: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
			_, _, _, err := custom(t, c.module, p)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "mine") {
				t.Errorf("%s\n%v", c.reason, err)
			}
		})
	}
}

func TestAFunctionOfOthersThatOnlyLooks(t *testing.T) {
	t.Parallel()
	kptfile := strings.Replace(kptfileOf(mine), "mutators", "validators", 1)
	remark := "results:\n- {message: fine so far, severity: info}\n"
	p := packageOf("Kptfile", kptfile, "a.yaml", first)
	made, results, _, err := custom(t, wasmtest.Write(outputOf(remark)), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, made); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Result{{Function: "mine", Validator: true, Notes: []string{"fine so far"}}}, results); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyWhatIsKnownByItsContentRuns(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{
		"tag": "registry.example.com/functions/mine:v1", "name": "mine", "short": "registry.example.com/functions/mine@sha256:abc",
		"not allowed": imageOf("yours"), "no registry": "mine@sha256:" + strings.Repeat("a", 64),
	} {
		p := packageOf("Kptfile", kptfileOf("{image: '"+image+"'}"))
		if _, _, m, err := custom(t, wasmtest.Write("x"), p); !errors.Is(err, ErrUnknownFunction) || len(m.inputs) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is built in is what runs, wherever its image says that it is from.
	p := packageOf("Kptfile", kptfileOf("{image: '"+imageOf("set-labels")+"', configMap: {a: b}}"), "a.yaml", other)
	if made, _, m, err := custom(t, wasmtest.Write("x"), p); err != nil || len(m.inputs) > 0 || !strings.Contains(string(made["a.yaml"].Content), "a: b") {
		t.Error(err)
	}
}

func FuzzOutputs(f *testing.F) {
	f.Add(outputOf("", item(0, "a.yaml", "  name: a\n"), item(-1, "b/c.yaml", "  name: c\n")))
	f.Add(outputOf("results: [{message: x, severity: error}]\n", item(0, "c.yaml", "  name: a\n")))
	f.Fuzz(func(t *testing.T, output string) {
		p := packageOf("Kptfile", kptfileOf(mine), "a.yaml", first, "x/keep", "kept")
		g := written{output}
		made, _, err := New(Options{Custom: g, MaxItems: 100, MaxNodes: 10_000}).Render(t.Context(), p)
		if err != nil {
			return
		}
		for name := range made {
			if _, there := p[name]; !there && (checkFile(name) != nil || strings.HasPrefix(name, "../")) {
				t.Errorf("it wrote %q", name)
			}
		}
		if string(made["x/keep"].Content) != "kept" || string(made["Kptfile"].Content) != kptfileOf(mine) {
			t.Error("it changed what is none of its objects")
		}
		if _, err := kpt.Open(made); err != nil {
			t.Errorf("it made what cannot be read: %v", err)
		}
	})
}

// written is a function that writes the text.
type written struct{ output string }

func (written) Fingerprint() string { return "" }

func (written) Check(string) error { return nil }

func (w written) Run(ctx context.Context, call Call) error { return call.Output(ctx, []byte(w.output)) }
