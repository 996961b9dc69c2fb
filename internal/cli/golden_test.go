package cli_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/tests/upstream/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden is a namespace with an installation foo of 1.0.0 from a Git repository, for which 2.0.0 is there and waits to be approved, and a
// file with the content of that.
func golden(t *testing.T) (namespace, content string) {
	t.Helper()
	namespace = rolling(t)
	const commit = "2222222222222222222222222222222222222222"
	var packed bytes.Buffer
	files := folder(t, map[string]string{
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {plain: two, size: large}\n",
		"e.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\ndata: {made: anew}\n",
		"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: another-canary}\n",
	})
	err := archive.Write(t.Context(), &packed, os.DirFS(files), nil, archive.Limits{})
	content = filepath.Join(t.TempDir(), "content.tar.gz")
	if err := errors.Join(err, os.WriteFile(content, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	store(t, namespace, repository("next", ", ref: {commit: '"+commit+"'}"))
	object{t, repositories, namespace, "next"}.patch(fmt.Sprintf("status: {artifact: {revision: 'main@sha1:%s', digest: 'sha256:%x', size: %d}}", commit, sha256.Sum256(packed.Bytes()), packed.Len()))
	store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-3.0.0}\n"+
		"spec: {moduleName: foo, version: 3.0.0, channel: slow, artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: next}}}\n"+
		"status: {version: 3.0.0, content: 'sha1:"+commit+"', conditions: [{type: ArtifactVerified, status: 'True', reason: Succeeded, message: '', lastTransitionTime: '2010-01-01T00:00:00Z'}, "+
		strings.Trim(condition("True", "Succeeded", "It is offered"), "[]")+"]}")
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	foo.patch("spec: {module: {channel: slow}, upgrade: {mode: Manual}}")
	foo.patch("status: {observedGeneration: " + fmt.Sprint(foo.get().GetGeneration()) + ", resolution: {module: foo, catalog: Local, namespace: " + namespace + ", selectedBy: channel/slow}, " +
		"current: {module: foo, version: 2.0.0, template: foo-2.0.0, namespace: " + namespace + "}, desired: {module: foo, version: 3.0.0, template: foo-3.0.0, namespace: " + namespace + "}, " +
		"pending: {version: 3.0.0, reason: AwaitingApproval, message: Approve the plan}, conditions: [" + foo.ready("True", "Installed", "Installed 2.0.0") + "], " +
		"history: [{version: 2.0.0, template: foo-2.0.0, outcome: Succeeded, at: '2010-01-02T00:00:00Z', digest: '" + digestOf("2.0.0") + "', message: Installed 2.0.0}, " +
		"{version: 1.0.0, template: foo-1.0.0, outcome: Failed, at: '2010-01-01T00:00:00Z', message: It was too large}]}")
	var members []string
	for _, one := range []struct{ group, kind, name string }{{"", "ConfigMap", "a"}, {"", "ConfigMap", "b"}, {"", "ConfigMap", "c"}, {"", "Secret", "s"}, {"apps", "Deployment", "foo"}} {
		kind := schema.GroupVersionKind{Group: one.group, Version: "v1", Kind: one.kind}
		members = append(members, fmt.Sprintf("{g: '%s', v: v1, k: %s, ns: %s, nm: %s, u: %s, h: other}", one.group, one.kind, namespace, one.name, object{t, kind, namespace, one.name}.get().GetUID()))
	}
	store(t, namespace, fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: Inventory\nmetadata: {name: foo}\ndata: {installationUID: %s, phase: Installed, salt: salt, members: [%s]}",
		foo.get().GetUID(), strings.Join(members, ", ")))
	at := metav1.NewTime(time.Date(2010, 1, 2, 0, 0, 0, 0, time.UTC))
	if err := env.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "foo.1"},
		InvolvedObject: corev1.ObjectReference{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind, Namespace: namespace, Name: "foo", UID: foo.get().GetUID()},
		Type:           "Normal", Reason: "Installed", Message: "Installed 2.0.0", FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}); err != nil {
		t.Fatal(err)
	}
	return namespace, content
}

// normal is an answer without what is another one each time: names of namespaces, digests, marks of what is hidden, and times.
func normal(text, namespace string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, namespace, "name-space"), filepath.Base(os.Args[0]), "cli.test")
	for pattern, instead := range map[string]string{
		`sha256:[0-9a-f]{64}`: "sha256:DIGEST", `sha256:[0-9a-f]{12}\b`: "sha256:DIGEST", `\(hidden [0-9a-f]{16}\)`: "(hidden MARK)", `\b\d+y(\d+d)?\b`: "AGO", `, [0-9ms]+ ago`: ", AGO ago",
		`"time": "2\d{3}-[^"]*"`: `"time": "NOW"`, `(New +)[0-9ms]+\n`: "${1}AGO\n", `("?uid"?): "?[0-9a-f-]{36}"?`: "$1: UID", `("?resourceVersion"?): "?\d+"?`: "$1: 1", `("?(?:creationTimestamp|requestedAt)"?): "?2\d{3}-[^"\n]*"?`: "$1: NOW", `applyset-[\w-]+-v1`: "applyset-ID-v1", `([^\s+-]) {3,}`: "$1   ", `"follow": \d+`: `"follow": 1`, `\d+ follow it`: "1 follow it", `\d+ others`: "0 others", `"others": \d+`: `"others": 0`, `\bgo1\.[\w.]+`: "go1.VERSION", `\bv1\.\d\d\.[\w.+-]+`: "vVERSION", `\blinux/\w+`: "PLATFORM",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, instead)
	}
	return text
}

// oneOfEach is a namespace with an object of each kind that the goldens of a namespace with an installation lack.
const oneOfEach = `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: image}
spec: {url: 'oci://registry.example.com/foo', interval: 1m, ref: {tag: 1.0.0}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: bucket}
spec: {bucketName: files, endpoint: s3.example.com, interval: 1m, suspend: true}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {url: 'https://charts.example.com', interval: 1m}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: chart}
spec: {chart: a, interval: 1m, sourceRef: {kind: HelmRepository, name: charts}}
---
apiVersion: modules.sluice.dev/v1alpha1
kind: Module
metadata: {name: bar}
spec: {channels: [{name: slow, version: 3.0.0}]}
---
apiVersion: packages.sluice.dev/v1alpha1
kind: Repository
metadata: {name: packages}
spec: {gitRepositoryRef: {name: app}}
---
apiVersion: packages.sluice.dev/v1alpha1
kind: PackageVariant
metadata: {name: variant}
spec: {upstream: {repo: packages, package: app, revision: 1}, downstream: {repo: packages, package: shop}}
---
apiVersion: packages.sluice.dev/v1alpha1
kind: PackageVariantSet
metadata: {name: set}
spec: {upstream: {repo: packages, package: app, revision: 1}, targets: [{repositories: [{name: packages, packageNames: [shop]}]}]}
---
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: generator}
spec: {sources: [{alias: repo, kind: GitRepository, name: app}], artifacts: [{name: made, copy: [{from: '@repo/deploy/**', to: '@artifact/'}]}]}
`

// TestGoldens: what commands say, to people and to programs, is in testdata. "go test ./internal/cli -run TestGoldens -update" rewrites it.
func TestGoldens(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace, content := golden(t)
	for text := range strings.SplitSeq(oneOfEach, "---\n") {
		store(t, namespace, text)
	}
	logged(t, namespace, `{"level":"info","ts":"2010-01-01T00:00:00Z","msg":"Installed","controllerKind":"ModuleInstallation","namespace":"`+namespace+`","name":"foo","version":"2.0.0"}`+"\n")
	next := edited(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-3.0.0}\n"+
		"spec: {moduleName: foo, version: 3.0.0, channel: other, artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: next}}}\n")
	for name, tc := range map[string]struct {
		line    string
		code    int
		outputs string
	}{
		"describe": {"describe foo", 0, "table json"}, "history": {"history foo", 0, "table wide json"}, "events": {"events foo", 0, "table wide json"},
		"get": {"get", 0, "table wide json"}, "get-all": {"get all", 0, "table wide name"}, "export": {"export mi/foo", 0, "table"},
		"why": {"why foo --version 2.0.0 --system-namespace NS", 0, "table wide json"}, "tree": {"tree foo", 0, "table wide json"},
		"trace": {"trace deploy/foo --field spec.template.spec.containers[name=c].image", 0, "table wide json"},
		"plan":  {"plan foo --system-namespace NS --artifact " + content, 1, "table wide json"}, "impact": {"impact --system-namespace NS -f " + next, 1, "table wide json"},
		"plan-detail": {"plan foo --detail yaml --system-namespace NS --artifact " + content, 1, "table markdown"},
		"build":       {"build mi/foo --system-namespace NS --artifact " + content, 0, "table"},
		"logs":        {"logs foo --system-namespace NS", 0, "table"}, "logs-json": {"logs foo --json --system-namespace NS", 0, "table"},
		"wait": {"wait foo --for version=2.0.0", 0, "table"}, "version": {"version --client", 0, "table json"},
		"completion": {"__complete get g", 0, "table"},
	} {
		for output := range strings.FieldsSeq(tc.outputs) {
			t.Run(name+"/"+output, func(t *testing.T) { sayGolden(t, name+"."+output, namespace, tc.line, output, tc.code) })
		}
	}
	t.Run("ui", func(t *testing.T) {
		b := started(t, env.Kubeconfig)
		key := regexp.MustCompile("=.*").ReplaceAllString(b.key, "=KEY")
		holdGolden(t, "ui.table", strings.NewReplacer(b.origin, "ORIGIN", b.key, key).Replace(b.shown()))
	})
}

// TestGoldensOfActs: what commands say that change something, one after the other.
func TestGoldensOfActs(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	namespace, content := golden(t)
	site := registry.ForTest(t, registry.Options{})
	pushed := pushedTo(t, site, "0.0.1", map[string]string{"app.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}}\n"})
	store(t, namespace, fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: pushed}\nspec: {url: '%s', insecure: true, interval: 1h, ref: {tag: 0.0.1}}", site.URL("modules/foo")))
	object{t, sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind), namespace, "pushed"}.patch("status: {artifact: {url: 'http://served/a', path: a, lastUpdateTime: '2010-01-01T00:00:00Z', digest: 'sha256:" + strings.Repeat("1", 64) + "', revision: '0.0.1" + pushed[strings.LastIndex(pushed, "@"):] + "'}}")
	source := folder(t, map[string]string{"app.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}}\n"})
	planned := run(t, env.Kubeconfig, "plan", "foo", "-n", namespace, "--system-namespace", namespace, "--artifact", content, "-o", "jsonpath={.digest}")
	object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}.patch("status: {pending: {plan: {digest: '" + planned.out + "', create: 1, update: 2, delete: 2}}}")
	for _, tc := range []struct {
		name, line, output string
		code               int
	}{
		{"verify", "verify ocirepository/pushed --egress-allow-loopback --artifact " + content, "table", 1},
		{"verify", "verify ocirepository/pushed --egress-allow-loopback --artifact " + content, "json", 1},
		{"suspend", "suspend gitrepository/app --reason moved", "table", 0},
		{"suspend", "suspend gitrepository/app", "again", 0},
		{"resume", "resume gitrepository/app", "table", 0},
		{"resume", "resume gitrepository/app", "again", 0},
		{"reconcile", "reconcile foo --with-source --no-wait", "table", 0},
		{"approve", "approve foo --yes --system-namespace NS --artifact " + content, "table", 0},
		{"push", "push " + source + " " + site.URL("modules/foo") + ":2.0.0 --insecure-registry --allow-dirty --dry-run", "table", 0},
		{"push", "push " + source + " " + site.URL("modules/foo") + ":2.0.0 --insecure-registry --allow-dirty", "json", 0},
		{"release", "release foo 2.0.0 " + pushed + " --insecure-registry --channel fast", "table", 0},
		{"release", "release foo 4.0.0 " + pushed + " --insecure-registry --apply", "apply", 0},
	} {
		t.Run(tc.name+"/"+tc.output, func(t *testing.T) {
			sayGolden(t, tc.name+"."+tc.output, namespace, strings.ReplaceAll(tc.line, site.Host(), "HOST"), tc.output, tc.code, "HOST", site.Host())
		})
	}
}

// sayGolden holds an answer against its file: what goes to stdout, and behind it what goes to stderr. What changes stands in the line as
// it does in the file.
func sayGolden(t *testing.T, name, namespace, line, output string, code int, changing ...string) {
	t.Helper()
	args := strings.Fields(strings.NewReplacer(append([]string{"NS", namespace}, changing...)...).Replace(line))
	if args[0] != "push" {
		args = slices.Insert(args, 1, "-n", namespace, "--kubeconfig", env.Kubeconfig)
	}
	if output != "table" && output != "again" && output != "apply" {
		args = append(args, "-o", output)
	}
	got := typed(t, args...)
	if got.code != code || strings.Contains(got.out+got.told, "canary") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	if strings.TrimSpace(got.told) != "" {
		got.out += "--- stderr\n" + got.told
	}
	for i := 0; i < len(changing); i += 2 {
		got.out = strings.ReplaceAll(got.out, changing[i+1], changing[i])
	}
	holdGolden(t, name, normal(got.out, namespace))
}

// holdGolden holds a text against its file.
func holdGolden(t *testing.T, name, said string) {
	t.Helper()
	place := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(place), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
