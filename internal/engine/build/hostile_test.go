package build_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/fair"
)

// laughs is a document that means a billion words.
func laughs() string {
	var out strings.Builder
	out.WriteString("a: &a [lol, lol, lol]\n")
	for c := 'b'; c < 'k'; c++ {
		fmt.Fprintf(&out, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	return out.String()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	asked := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if asked.Load() != 0 {
			t.Errorf("a build asked a server %d times", asked.Load())
		}
	})
	// What is asked is which limit strikes, not how fast this machine gets there; and under the race detector a value takes
	// several times the memory, so that what is to be stopped by a count has to have enough of it.
	patient := build.Options{CPU: 10 * time.Minute, Wall: 20 * time.Minute}
	roomy := patient
	roomy.Memory = 4 << 30
	builder, counting := build.New(patient), build.New(roomy)
	one := func(content string) map[string]string { return map[string]string{"dir/a.yaml": content} }
	own := func(content string) map[string]string {
		return map[string]string{"kustomization.yaml": content, "a.yaml": configMap("a", "")}
	}
	a := func(data string) map[string]string { return one(configMap("a", data)) }
	list := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	vars := map[string]string{"S": "s", "LONG": strings.Repeat("x", 1<<20), "AS": strings.Repeat("a", 4000)}
	tests := map[string]struct {
		reason string
		files  map[string]string
		path   string
		want   error
		says   string
	}{
		"no apiVersion":      {"", one("kind: A\nmetadata: {name: a}"), "", build.ErrDocument, `"dir/a.yaml", document 1: `},
		"bad apiVersion":     {"", one("apiVersion: a/b/c\nkind: A\nmetadata: {name: a}"), "", build.ErrDocument, "apiVersion"},
		"no kind":            {"", one("apiVersion: v1\nmetadata: {name: a}"), "", build.ErrDocument, "kind"},
		"no metadata":        {"", one("apiVersion: v1\nkind: A"), "", build.ErrDocument, "metadata"},
		"no name":            {"", one("apiVersion: v1\nkind: A\nmetadata: {}"), "", build.ErrDocument, "name"},
		"name is a number":   {"", one(configMap("1", "")), "", build.ErrDocument, "text"},
		"name is a path":     {"it would lead elsewhere", one(configMap("a/b", "")), "", build.ErrDocument, "the name"},
		"name is too long":   {"no record has room for it", one(configMap(strings.Repeat("a", 254), "")), "", build.ErrDocument, "longer than 253"},
		"kind is too long":   {"", one("apiVersion: v1\nkind: " + strings.Repeat("A", 64) + "\nmetadata: {name: a}"), "", build.ErrDocument, "longer than 63"},
		"group is a path":    {"it would lead elsewhere", one("apiVersion: ../v1\nkind: A\nmetadata: {name: a}"), "", build.ErrDocument, "the group"},
		"namespace is one":   {"it would lead elsewhere", one(configMap("a", "  namespace: a%2fb\n")), "", build.ErrDocument, "the namespace"},
		"generateName":       {"", one("apiVersion: v1\nkind: A\nmetadata: {generateName: a}"), "", build.ErrDocument, "generateName"},
		"label is a number":  {"it would be lost", a("  labels: {a: 1}\n"), "", build.ErrDocument, "quote it"},
		"stringData number":  {"", one("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: 1}"), "", build.ErrDocument, "quote it"},
		"twice":              {"", one(configMap("a", "") + "---\n" + configMap("a", "")), "", build.ErrDocument, `document 1 and "dir/a.yaml", document 2`},
		"two versions":       {"one object in the cluster", one("apiVersion: x/v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: x/v2\nkind: A\nmetadata: {name: a}\n"), "", build.ErrDocument, "twice"},
		"key twice":          {"", a("data: {a: 1, a: 2}\n"), "", build.ErrDocument, "twice"},
		"key made twice":     {"by variables", a("data: {s: 1, '${S}': 2}\n"), "", build.ErrDocument, "twice"},
		"broken":             {"", one("a: b: c"), "", build.ErrDocument, `"dir/a.yaml"`},
		"second is broken":   {"", one(configMap("a", "") + "---\na: [\n"), "", build.ErrDocument, "document 2"},
		"a scalar":           {"", one("text"), "", build.ErrDocument, "no mapping"},
		"a sequence":         {"", one("- a"), "", build.ErrDocument, "no mapping"},
		"not UTF-8":          {"", one("\xff\xfea\x00"), "", build.ErrDocument, "UTF-8"},
		"unknown tag":        {"", a("data: !!binary aGk=\n"), "", build.ErrDocument, "tag"},
		"language tag":       {"", a("data: !ruby/object:Gem {}\n"), "", build.ErrDocument, "tag"},
		"key is a mapping":   {"", a("data: {{a: b}: c}\n"), "", build.ErrDocument, ""},
		"huge integer":       {"it would be rounded", a("data: 18446744073709551616\n"), "", build.ErrDocument, "64 bits"},
		"infinite":           {"", a("data: .inf\n"), "", build.ErrDocument, "JSON"},
		"billion laughs":     {"", one(laughs()), "", build.ErrLimit, "aliases"},
		"quiet laughs":       {"few aliases, each of much", a(quietLaughs()), "", build.ErrLimit, ""},
		"loud enough":        {"a million and some", a(laughter(10_000, 110)), "", build.ErrLimit, "values"},
		"alias of itself":    {"", a("data: &a [*a]\n"), "", build.ErrLimit, "deeper"},
		"merge of itself":    {"", a("data: &a {<<: *a}\n"), "", build.ErrLimit, "deeper"},
		"nested":             {"", a("data: " + list(300) + "\n"), "", build.ErrLimit, "deeper"},
		"nested for worker":  {"", a("data: " + list(200_000) + "\n"), "", build.ErrDocument, ""},
		"large document":     {"", a("data: " + strings.Repeat("x", 6<<20) + "\n"), "", build.ErrLimit, "bytes"},
		"many documents":     {"", one(strings.Repeat("---\na: b\n", 10_001)), "", build.ErrLimit, "documents"},
		"no folder":          {"", one("a: b"), "missing", build.ErrPath, "missing"},
		"a file":             {"", one("a: b"), "dir/a.yaml", build.ErrPath, "a.yaml"},
		"path escapes":       {"", one("a: b"), "../../etc", build.ErrPath, ".."},
		"path escapes later": {"", one("a: b"), "dir/../..", build.ErrPath, ".."},
		"no variable":        {"", a("data: {a: '${MISSING}'}\n"), "", build.ErrVariable, "MISSING"},
		"open variable":      {"", a("data: {a: '${S'}\n"), "", build.ErrVariable, "closing brace"},
		"nested variables":   {"", a("data: {a: '" + strings.Repeat("${S:-", 50) + strings.Repeat("}", 50) + "'}\n"), "", build.ErrLimit, "deeper"},
		"many variables":     {"", a("data: {a: '" + strings.Repeat("${S}", 20_000) + "'}\n"), "", build.ErrLimit, "variables"},
		"variable bomb":      {"", a("data: {a: '" + strings.Repeat("${LONG}", 1000) + "'}\n"), "", build.ErrLimit, "bytes"},
		"replacement bomb":   {"each letter by many", a("data: {a: '${AS//a/" + strings.Repeat("b", 1<<20) + "}'}\n"), "", build.ErrWorker, "memory"},

		"remote resource":    {"", own("resources: ['" + server.URL + "/a.yaml']"), "", build.ErrForbidden, server.URL},
		"remote git":         {"", own("resources: ['github.com/org/repo//path?ref=main']"), "", build.ErrForbidden, "resources"},
		"remote ssh":         {"", own("resources: ['git@example.com:org/repo.git']"), "", build.ErrForbidden, "git@"},
		"remote ssh url":     {"", own("bases: ['ssh://git@example.com/org/repo']"), "", build.ErrForbidden, "resources"},
		"git getter":         {"", own("components: ['git::https://example.com/x']"), "", build.ErrForbidden, "components"},
		"scheme-less remote": {"looks like a folder", own("resources: ['example.com/org/repo']"), "", build.ErrKustomize, "not in the artifact"},
		"remote file url":    {"", own("resources: ['file:///etc']"), "", build.ErrForbidden, "file:"},
		"remote crd":         {"", own("resources: [a.yaml]\ncrds: ['" + server.URL + "']"), "", build.ErrForbidden, "crds"},
		"remote openapi":     {"", own("resources: [a.yaml]\nopenapi: {path: '" + server.URL + "'}"), "", build.ErrForbidden, "openapi"},
		"remote patch":       {"", own("resources: [a.yaml]\npatches: [{path: '" + server.URL + "'}]"), "", build.ErrForbidden, "patch"},
		"remote generator":   {"", own("configMapGenerator: [{name: a, files: ['k=" + server.URL + "']}]"), "", build.ErrForbidden, "configMapGenerator"},
		"remote in a transformer": {"not in the kustomization itself", map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": configMap("a", ""),
			"t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: " + server.URL + "/x\ntarget: {kind: ConfigMap}\n",
		}, "", build.ErrForbidden, "elsewhere"},
		"remote in a base": {"", map[string]string{"kustomization.yaml": "resources: [b]", "b/kustomization.yaml": "resources: ['" + server.URL + "']"}, "", build.ErrForbidden, "b/kustomization.yaml"},
		"escape":           {"", own("resources: ['../../etc/passwd']"), "", build.ErrForbidden, "leads out"},
		"escape and back":  {"", own("resources: ['../../artifact/a.yaml']"), "", build.ErrForbidden, "leads out"},
		"absolute":         {"", own("resources: ['/etc/passwd']"), "", build.ErrForbidden, "absolute"},
		"escaping file":    {"", own("configMapGenerator: [{name: a, files: ['../../../../var/run/secrets/kubernetes.io/serviceaccount/token']}]"), "", build.ErrForbidden, "leads out"},
		"escaping env":     {"", own("secretGenerator: [{name: a, envs: ['../x']}]"), "", build.ErrForbidden, "secretGenerator"},
		"escape in a transformer": {"not in the kustomization itself", map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": configMap("a", ""),
			"t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: ../../etc/passwd\ntarget: {kind: ConfigMap}\n",
		}, "", build.ErrForbidden, "out of the artifact"},
		"helm":          {"", own("helmCharts: [{name: a, repo: 'https://example.com'}]"), "", build.ErrForbidden, "Helm"},
		"helm plugin":   {"", map[string]string{"kustomization.yaml": "generators: [g.yaml]", "g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: x\n"}, "", build.ErrKustomize, "helm"},
		"exec plugin":   {"", map[string]string{"kustomization.yaml": "generators: [g.yaml]", "g.yaml": "apiVersion: someteam.example.com/v1\nkind: Exec\nmetadata: {name: a}\n"}, "", build.ErrKustomize, "plugin"},
		"exec function": {"", map[string]string{"kustomization.yaml": "generators: [g.yaml]", "g.yaml": "apiVersion: x/v1\nkind: Exec\nmetadata:\n  name: a\n  annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}\n"}, "", build.ErrKustomize, "plugin"},
		"container":     {"", map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [g.yaml]", "a.yaml": configMap("a", ""), "g.yaml": "apiVersion: x/v1\nkind: C\nmetadata:\n  name: a\n  annotations: {config.kubernetes.io/function: 'container: {image: x}'}\n"}, "", build.ErrKustomize, "plugin"},
		"itself":        {"", own("resources: ['.']"), "", build.ErrKustomize, "cycle"},
		"each other":    {"", map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]"}, "a", build.ErrKustomize, "cycle"},
		"two files":     {"", map[string]string{"kustomization.yaml": "resources: []", "kustomization.yml": "resources: []"}, "", build.ErrKustomize, "multiple"},
		"unknown field": {"", own("resources: [a.yaml]\nrubbish: 1"), "", build.ErrKustomize, "rubbish"},
		"laughing base": {"", map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n" + laughs()}, "", nil, ""},
		"duplicates":    {"kustomize tells no values from the file apart", map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "data: {a: '1', a: '2'}\n")}, "", nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			builder := builder
			if errors.Is(test.want, build.ErrLimit) {
				builder = counting
			}
			_, err := builder.Build(t.Context(), build.Request{Tree: tree(test.files), Path: test.path, Substitute: vars})
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.says)) {
				t.Errorf("%s: got %v", test.reason, err)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			t.Log(time.Since(begin).Round(time.Millisecond), err)
		})
	}
}

// quietLaughs has under a thousand aliases, of which each means ten thousand values.
func quietLaughs() string { return laughter(10_000, 500) }

// laughter are some aliases, of which each means so many values.
func laughter(values, aliases int) string {
	return "x: &x [" + strings.Repeat("a,", values) + "a]\ny: [" + strings.Repeat("*x,", aliases) + "*x]\n"
}

func TestNamesOfVariables(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "1A", "A-B", "A B", "Ä", "A\n"} {
		_, err := build.New(build.Options{}).Build(t.Context(), build.Request{Tree: tree(map[string]string{"a.yaml": configMap("a", "")}), Substitute: map[string]string{name: ""}})
		if !errors.Is(err, build.ErrVariable) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestWorkerThatMisbehaves(t *testing.T) {
	t.Parallel()
	self := "/proc/self/exe"
	tests := map[string]struct {
		reason string
		worker []string
		change func(*build.Options)
		says   string
	}{
		"spins":      {"the kernel ends it", []string{self, "worker-that-spins"}, func(o *build.Options) { o.CPU, o.Wall = time.Second, 20*time.Minute }, "processor time"},
		"hoards":     {"memory is bounded", []string{self, "worker-that-hoards"}, func(o *build.Options) { o.Memory, o.Wall = 64<<20, 20*time.Minute }, "64 MiB"},
		"sleeps":     {"it is killed", []string{self, "worker-that-sleeps"}, func(o *build.Options) { o.Wall = 300 * time.Millisecond }, "stopped after"},
		"babbles":    {"it is not listened to", []string{self, "worker-that-babbles"}, nil, "ended early"},
		"panics":     {"its own words are told", []string{self, "worker-that-panics"}, nil, "on purpose"},
		"is missing": {"", []string{"/nonexistent"}, nil, "start it"},
		"is another": {"", []string{"/bin/true"}, nil, "ended early"},
		"is prudent": {"nothing that it tries works", []string{self, "worker-that-looks-around"}, nil, "it can do nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := build.Options{Worker: test.worker}
			if test.change != nil {
				test.change(&options)
			}
			_, err := build.New(options).Build(t.Context(), build.Request{Tree: tree(map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "")})})
			if !errors.Is(err, build.ErrWorker) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: got %v", test.reason, err)
			}
		})
	}
}

func TestRealBuildRunsIntoItsMemoryLimit(t *testing.T) {
	t.Parallel()
	files := map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "data: ["+strings.Repeat("a,", 1<<20)+"a]\n")}
	builder := build.New(build.Options{Memory: 96 << 20, CPU: 10 * time.Minute, Wall: 20 * time.Minute})
	_, err := builder.Build(t.Context(), build.Request{Tree: tree(files)})
	if !errors.Is(err, build.ErrWorker) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v", err)
	}
	// The next one is built as if nothing had been.
	_, err = builder.Build(t.Context(), build.Request{Tree: tree(map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "")})})
	check(t, err)
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{Worker: []string{"/proc/self/exe", "worker-that-sleeps"}, Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		// One waits for the worker, two for their turn.
		group.Go(func() {
			_, err := builder.Build(ctx, build.Request{Tree: many(2, true)})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	cancel()
	group.Wait()
}

func TestNamespacesShareTheWorkers(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{Workers: 2})
	busy := builder.Workers().Ask(fair.Wish{Namespace: "a"}, func() {})
	waiting := make(chan error, 1)
	go func() {
		_, err := builder.Build(t.Context(), build.Request{Namespace: "a", Tree: many(2, true)})
		waiting <- err
	}()
	_, err := builder.Build(t.Context(), build.Request{Namespace: "b", Tree: many(2, true)})
	check(t, err)
	select {
	case err := <-waiting:
		t.Errorf("a namespace has both workers: %v", err)
	default:
	}
	busy.Release()
	check(t, <-waiting)
}
