package cli_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// took is how long something took, as commands say it.
var took = regexp.MustCompile(`, \d+\.\d s`)

// untimed are the lines of what a command said, without how long things took and in which namespace they are.
func untimed(text, namespace string) []string {
	text = strings.ReplaceAll(took.ReplaceAllString(text, ""), namespace+"/", "NS/")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSpace(text), "\n")
}

// TestReconcile: whatever the controller makes of the request is told, and in the exit code.
func TestReconcile(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	const second = "main@sha1:2222222222222222222222222222222222222222"
	for name, tc := range map[string]struct {
		reason string
		object string
		play   func(object)
		code   int
		want   string
	}{
		"Unchanged": {
			"there was nothing to do", repository("app", ""),
			func(o object) { o.answers(o.asked(), "True", "Succeeded", "stored") }, 0,
			"✔ GitRepository NS/app  unchanged",
		},
		"Changed": {
			"something new was found", repository("app", ""),
			func(o object) { o.answers(o.asked(), "True", "Succeeded", "stored", artifact(second)) }, 0,
			"✔ GitRepository NS/app  main@sha1:111111111111 → main@sha1:222222222222",
		},
		"Installation": {
			"it says which version it has", installation("app", "", "{current: {version: 2.0.0}}"),
			func(o object) { o.answers(o.asked(), "True", "Installed", "Installed 2.0.0") }, 0,
			"✔ ModuleInstallation NS/app  2.0.0, unchanged",
		},
		"First": {
			"it had none before", installation("app", "", "{}"),
			func(o object) {
				o.answers(o.asked(), "True", "Installed", "Installed 2.0.0", "current: {version: 2.0.0}, ")
			}, 0,
			"✔ ModuleInstallation NS/app  2.0.0",
		},
		"Held": {
			"what holds a change back is no failure", installation("app", "", "{current: {version: 1.0.0}}"),
			func(o object) {
				o.answers(o.asked(), "True", "Installed", "Installed 1.0.0", "pending: {version: 2.0.0, reason: AwaitingApproval, message: Approve}, ")
			}, 0,
			"✔ ModuleInstallation NS/app  1.0.0, unchanged, Held: AwaitingApproval: Approve",
		},
		"Paused": {
			"it is looked at all the same", installation("app", ", management: Paused", "{current: {version: 1.0.0}}"),
			func(o object) { o.answers(o.asked(), "True", "Installed", "left alone") }, 0,
			"✔ ModuleInstallation NS/app  1.0.0, unchanged, Paused: left alone",
		},
		"Failed": {
			"the attempt that was asked for failed", repository("app", ""),
			func(o object) { o.answers(o.asked(), "False", "GitOperationFailed", "no such\x1b[31m host") }, 1,
			`✗ GitRepository NS/app  Failed: GitOperationFailed: no such\x1b[31m host`,
		},
		"FailedBefore": {
			"that it failed before says nothing", strings.Replace(repository("app", ""), "status: 'True', reason: Succeeded", "status: 'False', reason: Failed", 1),
			func(o object) { o.answers(o.asked(), "True", "Succeeded", "stored") }, 0,
			"✔ GitRepository NS/app  unchanged",
		},
		"Later": {
			"somebody else asked again, and was answered alone", repository("app", ""),
			func(o object) {
				o.asked()
				o.patch("metadata: {annotations: {" + requestedAt + ": later}}")
				o.answers("later", "True", "Succeeded", "stored")
			}, 0,
			"✔ GitRepository NS/app  unchanged",
		},
		"Works": {
			"the answer came before the end of the work", installation("app", "", "{}"),
			func(o object) {
				token := o.asked()
				o.answers(token, "Unknown", "Progressing", "waits for members")
				o.answers(token, "True", "Installed", "Installed 2.0.0", "current: {version: 2.0.0}, ")
			}, 0,
			"✔ ModuleInstallation NS/app  2.0.0",
		},
		"Edited": {
			"what was found for the spec before the edit does not count", repository("app", ""),
			func(o object) {
				token, before := o.asked(), o.ready("False", "GitOperationFailed", "no such host")
				o.patch("spec: {url: 'https://example.com/other'}")
				o.patch("status: {lastHandledReconcileAt: '" + token + "', conditions: [" + before + "]}")
				o.answers(token, "True", "Succeeded", "stored", artifact(second))
			}, 0,
			"✔ GitRepository NS/app  main@sha1:111111111111 → main@sha1:222222222222",
		},
		"Suspended": {
			"suspended meanwhile, it is answered without work", repository("app", ""),
			func(o object) {
				token := o.asked()
				o.patch("{spec: {suspend: true}, metadata: {annotations: {sluice.dev/suspended-by: jane}}}")
				o.answers(token, "True", "Succeeded", "stored")
			}, 1,
			"✗ GitRepository NS/app  Suspended: Suspended by jane",
		},
		"Going": {
			"it was to go before, and that has come to its end", strings.Replace(repository("app", ""), "{name: app}", "{name: app, finalizers: [example.com/hold]}", 1),
			func(o object) {
				o.asked()
				o.patch("metadata: {finalizers: null}")
			}, 0,
			"✔ GitRepository NS/app  gone",
		},
		"Blocked": {
			"somebody has to do something before it can go", strings.Replace(installation("app", "", "{}"), "{name: app,", "{name: app, finalizers: [example.com/hold],", 1),
			func(o object) {
				token := o.asked()
				o.remove()
				o.answers(token, "False", "DeletionBlocked", "Data")
			}, 1,
			"✗ ModuleInstallation NS/app  Blocked: DeletionBlocked: Data",
		},
		"Deleted": {
			"nobody will answer any more", repository("app", ""),
			func(o object) { o.asked(); o.remove() }, 1,
			"✗ GitRepository NS/app  deleted meanwhile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := env.NewNamespace(t)
			o := played(t, namespace, tc.object)
			if name == "Going" {
				o.remove()
			}
			ended := begin(t.Context(), env.Kubeconfig, "reconcile", strings.ToLower(o.kind.Kind)+"/app", "-n", namespace, "-q")
			tc.play(o)
			got := ended()
			if diff := cmp.Diff([]string{tc.want}, untimed(got.out, namespace)); diff != "" || got.code != tc.code || strings.TrimSpace(got.told) != "" {
				t.Errorf("%s: ended with %d, told %q, -want +got:\n%s", tc.reason, got.code, got.told, diff)
			}
		})
	}
}

// TestReconcilePatchesAnAnnotationAlone: as a manager of its own, so that it takes nobody else's fields.
func TestReconcilePatchesAnAnnotationAlone(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	o := played(t, namespace, repository("app", ""))
	before := o.get()
	if got := run(t, env.Kubeconfig, "reconcile", "gitrepo", "app", "-n", namespace, "--no-wait"); got.code != 0 || got.out == "" {
		t.Fatalf("%+v", got)
	}
	after := o.get()
	fields := after.GetManagedFields()
	if last := fields[len(fields)-1]; last.Manager != "sluice-cli" || last.FieldsV1.GetRawString() != `{"f:metadata":{"f:annotations":{".":{},"f:`+requestedAt+`":{}}}}` {
		t.Errorf("%s owns %s", last.Manager, last.FieldsV1.GetRawString())
	}
	after.SetAnnotations(before.GetAnnotations())
	for _, obj := range []*unstructured.Unstructured{before, after} {
		obj.SetManagedFields(nil)
		obj.SetResourceVersion("")
	}
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// TestReconcileInTime: when the time is over, what each object is at is told.
func TestReconcileInTime(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	played(t, namespace, repository("app", ""))
	got := inTime(t, "nobody has answered yet; Ready: stored", "reconcile", "gitrepo/app", "-n", namespace)
	if want := "wait for GitRepository " + namespace + "/app: --timeout has passed: nobody has answered yet; Ready: stored\n"; got.code != 4 || got.told != want || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// TestReconcileInTimeWithSource: what would come after it is not asked for any more.
func TestReconcileInTimeWithSource(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	played(t, namespace, repository("library", ""))
	app := played(t, namespace, repository("app", ", include: [{repository: {name: library}}]"))
	got := run(t, env.Kubeconfig, "reconcile", "gitrepo/app", "-n", namespace, "--with-source", "--timeout", "200ms")
	want := "wait for GitRepository " + namespace + "/app: --timeout has passed: not asked for\n"
	if got.code != 4 || !strings.HasSuffix(got.told, want) || got.out != "" || app.get().GetAnnotations()[requestedAt] != "" {
		t.Errorf("%+v", got)
	}
}

// TestReconcileIsInterrupted: what was asked for stays so, and nothing else was begun.
func TestReconcileIsInterrupted(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	library, app := played(t, namespace, repository("library", "")), played(t, namespace, repository("app", ", include: [{repository: {name: library}}]"))
	ctx, interrupt := context.WithCancel(t.Context())
	kubeconfig, err := env.KubeconfigAs("stops-in-"+namespace, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	ended := begin(ctx, kubeconfig, "reconcile", "gitrepo/app", "-n", namespace, "--with-source")
	library.asked()
	watching(t, "stops-in-"+namespace)
	interrupt()
	if got := ended(); got.code != 130 || got.told != "wait for GitRepository "+namespace+"/library: interrupted\n" {
		t.Errorf("%+v", got)
	}
	if token := app.get().GetAnnotations()[requestedAt]; token != "" {
		t.Errorf("app is asked for with %s", token)
	}
}

// TestReconcileWithSource: what an object takes from comes first, whatever that takes from before it, and nothing twice.
func TestReconcileWithSource(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	ground := played(t, namespace, repository("ground", ""))
	library := played(t, namespace, repository("library", ", include: [{repository: {name: ground}}]"))
	app := played(t, namespace, repository("app", ", include: [{repository: {name: library}}, {repository: {name: ground}}]"))
	ended := begin(t.Context(), env.Kubeconfig, "reconcile", "gitrepo", "app", "library", "-n", namespace, "--with-source")
	for _, one := range []object{ground, library, app} {
		token := one.asked()
		for _, later := range []object{library, app} {
			if later != one && later.get().GetAnnotations()[requestedAt] > token {
				t.Errorf("%s was asked for before %s had answered", later.name, one.name)
			}
		}
		one.answers(token, "True", "Succeeded", "stored")
	}
	want := []string{"✔ GitRepository NS/ground  unchanged", "✔ GitRepository NS/library  unchanged", "✔ GitRepository NS/app  unchanged"}
	got := ended()
	if diff := cmp.Diff(want, untimed(got.out, namespace)); diff != "" || got.code != 0 {
		t.Errorf("ended with %d, told %q, -want +got:\n%s", got.code, got.told, diff)
	}
}

// TestReconcileWithSources: each kind knows what its objects take from.
func TestReconcileWithSources(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	for _, text := range []string{
		repository("git", ""), repository("left", ", include: [{repository: {name: right}}]"), repository("right", ", include: [{repository: {name: left}}], suspend: true"),
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\nspec: {url: 'https://example.com', interval: 1m}\n",
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: registry}\nspec: {url: 'oci://example.com/a', type: oci}\n",
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: chart}\nspec: {chart: a, interval: 1m, sourceRef: {kind: HelmRepository, name: charts}}\n",
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: fromoci}\nspec: {chart: a, interval: 1m, sourceRef: {kind: HelmRepository, name: registry}}\n",
		"apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: made}\nspec: {sources: [{alias: a, kind: GitRepository, name: git}, {alias: b, kind: ExternalArtifact, name: outside}], artifacts: [{name: out, copy: [{from: '@a/**', to: '@artifact/'}]}]}\n",
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata: {name: outside}\nspec: {sourceRef: {apiVersion: example.com/v1, kind: Other, name: other}}\n",
		"apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo}\nspec: {moduleName: foo, version: 1.0.0, artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: git}}}\n",
		installation("mine", "", "{desired: {template: foo, namespace: "+namespace+"}}"),
		"apiVersion: packages.sluice.dev/v1alpha1\nkind: Repository\nmetadata: {name: blueprints}\nspec: {gitRepositoryRef: {name: git}}\n",
		"apiVersion: packages.sluice.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: variant}\nspec: {upstream: {repo: blueprints, package: a}, downstream: {repo: deployed}}\n",
	} {
		store(t, namespace, text)
	}
	for arg, tc := range map[string]struct {
		want []string
		told string
	}{
		"hc/chart":       {[]string{"HelmRepository NS/charts  asked for", "HelmChart NS/chart  asked for"}, ""},
		"hc/fromoci":     {[]string{"HelmChart NS/fromoci  asked for"}, ""},
		"ag/made":        {[]string{"GitRepository NS/git  asked for", "ArtifactGenerator NS/made  asked for"}, ""},
		"mi/mine":        {[]string{"GitRepository NS/git  asked for", "ModuleTemplate NS/foo  asked for", "ModuleInstallation NS/mine  asked for"}, ""},
		"pkgvar/variant": {[]string{"Repository NS/blueprints  asked for", "PackageVariant NS/variant  asked for"}, ""},
		"gitrepo/left":   {[]string{"GitRepository NS/left  asked for"}, "GitRepository " + namespace + "/right is left out: it is suspended.\n"},
	} {
		t.Run(arg, func(t *testing.T) {
			got := run(t, env.Kubeconfig, "reconcile", arg, "-n", namespace, "--with-source", "--no-wait")
			if diff := cmp.Diff(tc.want, untimed(got.out, namespace)); diff != "" || got.code != 0 || got.told != tc.told {
				t.Errorf("ended with %d, told %q, -want +got:\n%s", got.code, got.told, diff)
			}
		})
	}
}

// TestReconcileStopsAtASource: an object is not asked for where what it takes from failed; others are.
func TestReconcileStopsAtASource(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	library, other := played(t, namespace, repository("library", "")), played(t, namespace, repository("other", ""))
	app := played(t, namespace, repository("app", ", include: [{repository: {name: library}}]"))
	ended := begin(t.Context(), env.Kubeconfig, "reconcile", "gitrepo", "app", "other", "-n", namespace, "--with-source")
	other.answers(other.asked(), "True", "Succeeded", "stored")
	library.answers(library.asked(), "False", "GitOperationFailed", "no such host")
	got := ended()
	want := []string{
		"✗ GitRepository NS/app  not asked for, as GitRepository " + "NS/library is not ready",
		"✗ GitRepository NS/library  Failed: GitOperationFailed: no such host", "✔ GitRepository NS/other  unchanged",
	}
	lines := untimed(got.out, namespace)
	slices.Sort(lines)
	slices.Sort(want)
	if diff := cmp.Diff(want, lines); diff != "" || got.code != 1 || app.get().GetAnnotations()[requestedAt] != "" {
		t.Errorf("ended with %d, told %q, -want +got:\n%s", got.code, got.told, diff)
	}
}

// TestReconcileSaysWhatHelps: nothing is asked for unless all can be.
func TestReconcileSaysWhatHelps(t *testing.T) {
	t.Parallel()
	namespace, empty := env.NewNamespace(t), env.NewNamespace(t)
	app := played(t, namespace, repository("app", ""))
	store(t, namespace, strings.Replace(repository("idle", ", suspend: true"), "{name: idle}", "{name: idle, annotations: {sluice.dev/suspended-by: jane, sluice.dev/suspended-reason: a move}}", 1))
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: registry}\nspec: {url: 'oci://example.com/a', type: oci}\n")
	for name, tc := range map[string]struct {
		args []string
		code int
		told []string
	}{
		"Suspended": {[]string{"gitrepo", "app", "idle"}, 2, []string{"/idle: it is suspended by jane: a move", "sluice resume gitrepository/idle -n " + namespace}},
		"Missing":   {[]string{"gitrepo", "app", "none"}, 2, []string{`"none"`, "not found"}},
		"Static":    {[]string{"helmrepo/registry"}, 2, []string{"nobody works on it"}},
		"External":  {[]string{"ea/a"}, 3, []string{"externalartifacts have no controller", "this is for moduleinstallations"}},
		"Unnamed":   {[]string{"gitrepo"}, 3, []string{"no object is named", "--all"}},
		"Twice":     {[]string{"gitrepo", "app", "--all"}, 3, []string{"objects are named"}},
		"Selector":  {[]string{"gitrepo", "-l", "!!"}, 3, []string{"--selector"}},
		"Timeout":   {[]string{"gitrepo/app", "--timeout", "0s"}, 3, []string{"--timeout"}},
		"NoWait":    {[]string{"gitrepo/app", "--no-wait", "--timeout", "1m"}, 3, []string{"[no-wait timeout]"}},
		"None":      {[]string{"gitrepo", "--all", "-n", empty}, 0, []string{"There are none in namespace " + empty + ".\n"}},
		"NoLabels":  {[]string{"gitrepo", "-l", "a=b"}, 0, []string{"There are none in namespace " + namespace + " with these labels.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"reconcile", "-n", namespace}, tc.args...)...)
			for _, want := range tc.told {
				if !strings.Contains(got.told, want) {
					t.Errorf("%q is not told in %q", want, got.told)
				}
			}
			if got.code != tc.code || got.out != "" || app.get().GetAnnotations()[requestedAt] != "" {
				t.Errorf("ended with %d: %q", got.code, got.out)
			}
		})
	}
}

// TestReconcileAll: those that are suspended are left out, which is told.
func TestReconcileAll(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, repository("app", ""))
	store(t, namespace, repository("idle", ", suspend: true"))
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata: {name: outside}\nspec: {}\n")
	got := run(t, env.Kubeconfig, "reconcile", "sources", "--all", "--no-wait", "-n", namespace)
	if got.code != 0 || got.out != "GitRepository "+namespace+"/app  asked for\n" || got.told != "GitRepository "+namespace+"/idle is left out: it is suspended.\n" {
		t.Errorf("%+v", got)
	}
}
