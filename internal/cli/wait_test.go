package cli_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/testenv"
)

// watching waits until the user has opened a watch.
func watching(t *testing.T, user string) {
	t.Helper()
	testenv.Eventually(t, user+" watches", func(context.Context) (bool, string) {
		requests, err := env.Requests(user)
		return err == nil && slices.ContainsFunc(requests, func(r testenv.Request) bool { return r.Verb == "watch" && r.Stage == "ResponseStarted" }), ""
	})
}

// with is a condition beside Ready, which is True.
func (o object) with(condition, status string) string {
	return o.ready("True", "Installed", "Installed 2.0.0") + ", " + strings.Replace(o.ready(status, "So", "so it is"), `"Ready"`, `"`+condition+`"`, 1)
}

// TestWait: for each aim what is not enough, and then what is.
func TestWait(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for name, tc := range map[string]struct {
		reason, aim string
		object      string
		almost      func(object)
		then        func(object)
		code        int
		want        string
	}{
		"Ready": {
			"once it is", "ready", installation("app", "", "{}"),
			func(o object) { o.answers("", "False", "HealthCheckFailed", "StatefulSet") },
			func(o object) { o.answers("", "True", "Installed", "Installed 2.0.0") }, 0,
			"✔ ModuleInstallation NS/app  Ready: Installed 2.0.0",
		},
		"Held": {
			"it is ready, whatever it holds back", "ready", installation("app", "", "{}"),
			func(o object) { o.answers("", "Unknown", "Progressing", "waits") },
			func(o object) {
				o.answers("", "True", "Installed", "Installed 1.0.0", "pending: {reason: AwaitingApproval, message: Approve}, ")
			}, 0,
			"✔ ModuleInstallation NS/app  Held: AwaitingApproval: Approve",
		},
		"Edited": {
			"ready for an older spec is not enough", "ready", repository("app", ""),
			func(o object) {
				o.patch("spec: {url: 'https://example.com/other'}")
			},
			func(o object) { o.answers("", "True", "Succeeded", "stored anew") }, 0,
			"✔ GitRepository NS/app  Ready: stored anew",
		},
		"Healthy": {
			"members work", "healthy", installation("app", "", "{}"),
			func(o object) { o.patch("status: {conditions: [" + o.with("Healthy", "Unknown") + "]}") },
			func(o object) { o.patch("status: {conditions: [" + o.with("Healthy", "True") + "]}") }, 0,
			"✔ ModuleInstallation NS/app  healthy",
		},
		"UpToDate": {
			"it holds nothing back", "uptodate", installation("app", "", "{}"),
			func(o object) {
				o.answers("", "True", "Installed", "Installed 1.0.0", "pending: {reason: AwaitingApproval}, ")
			},
			func(o object) { o.patch("status: {pending: null, conditions: [" + o.with("UpToDate", "True") + "]}") }, 0,
			"✔ ModuleInstallation NS/app  Ready: Installed 2.0.0",
		},
		"Version": {
			"it has the version, and is ready", "version=2.0.0", installation("app", "", "{}"),
			func(o object) { o.answers("", "True", "Installed", "Installed 1.0.0", "current: {version: 1.0.0}, ") },
			func(o object) { o.answers("", "True", "Installed", "Installed 2.0.0", "current: {version: 2.0.0}, ") }, 0,
			"✔ ModuleInstallation NS/app  2.0.0; Ready: Installed 2.0.0",
		},
		"Gone": {
			"its deletion has come to its end", "gone", strings.Replace(repository("app", ""), "{name: app}", "{name: app, finalizers: [example.com/hold]}", 1),
			func(o object) { o.remove() },
			func(o object) { o.patch("metadata: {finalizers: null}") }, 0,
			"✔ GitRepository NS/app  gone",
		},
		"Stalled": {
			"only an edit helps", "ready", repository("app", ""),
			func(o object) { o.answers("", "False", "Failed", "no such host") },
			func(o object) {
				o.patch("status: {conditions: [" + o.ready("False", "URLInvalid", "bad") + ", " + strings.Replace(o.ready("True", "URLInvalid", "bad"), `"Ready"`, `"Stalled"`, 1) + "]}")
			}, 1,
			"✗ GitRepository NS/app  Stalled: URLInvalid: bad",
		},
		"Deleted": {
			"it will not become ready", "ready", installation("app", "", "{}"),
			func(o object) { o.answers("", "False", "Failed", "no such host") },
			func(o object) { o.remove() }, 1,
			"✗ ModuleInstallation NS/app  deleted meanwhile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := env.NewNamespace(t)
			kubeconfig, err := env.KubeconfigAs("waits-in-"+namespace, "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			o := played(t, namespace, tc.object)
			tc.almost(o)
			args := []string{strings.ToLower(o.kind.Kind) + "/app", "-n", namespace, "--for", tc.aim}
			if got := run(t, env.Kubeconfig, append([]string{"wait", "--timeout", "100ms"}, args...)...); got.code != 4 || got.out != "" {
				t.Errorf("%s: before that: %+v", tc.reason, got)
			}
			ended := begin(t.Context(), kubeconfig, append([]string{"wait", "-q"}, args...)...)
			watching(t, "waits-in-"+namespace)
			tc.then(o)
			got := ended()
			if diff := cmp.Diff(tc.want, strings.Join(untimed(got.out, namespace), "\n")); diff != "" || got.code != tc.code || strings.TrimSpace(got.told) != "" {
				t.Errorf("%s: ended with %d, told %q, -want +got:\n%s", tc.reason, got.code, got.told, diff)
			}
		})
	}
}

// TestWaitForSeveral: one watch follows all of a kind, and ends when the last one is as it is to be.
func TestWaitForSeveral(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	kubeconfig, err := env.KubeconfigAs("all-in-"+namespace, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	objects := []object{
		played(t, namespace, installation("a", "", "{}")), played(t, namespace, installation("b", "", "{}")), played(t, namespace, repository("c", "")),
	}
	played(t, namespace, installation("other", "", "{}"))
	ended := begin(t.Context(), kubeconfig, "wait", "mi/a", "mi/b", "gitrepo/c", "-n", namespace)
	watching(t, "all-in-"+namespace)
	for _, o := range objects {
		o.answers("", "True", "Succeeded", "done")
	}
	if got := ended(); got.code != 0 || strings.Count(got.out, "\n") != 3 {
		t.Errorf("%+v", got)
	}
	requests, err := env.Requests("all-in-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, r := range requests {
		if r.Verb == "list" {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("%d lists: %+v", lists, requests)
	}
}

// inTime types a command with limits that grow until it tells the words: some of the first pass before the API server has answered.
func inTime(t *testing.T, words string, args ...string) (got answer) {
	t.Helper()
	for limit := 200 * time.Millisecond; limit < time.Minute && !strings.Contains(got.told, words); limit *= 2 {
		got = run(t, env.Kubeconfig, append(args, "--timeout", limit.String())...)
	}
	return got
}

// TestWaitTellsWhatItWaitsFor: for each object that is not as it was to be when the time is over.
func TestWaitTellsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	played(t, namespace, installation("broken", "", "{conditions: "+condition("False", "HealthCheckFailed", "StatefulSet\nredis")+"}"))
	played(t, namespace, installation("calm", "", "{conditions: "+condition("True", "Installed", "Installed 2.0.0")+"}"))
	played(t, namespace, installation("fresh", "", "{}"))
	got := inTime(t, "/fresh: --timeout has passed: New", "wait", "mi", "--all", "-n", namespace)
	for _, want := range []string{
		"wait for ModuleInstallation " + namespace + `/broken: --timeout has passed: Failed: HealthCheckFailed: StatefulSet\nredis`,
		"wait for ModuleInstallation " + namespace + "/fresh: --timeout has passed: New",
	} {
		if !strings.Contains(got.told, want) {
			t.Errorf("%q is not told in %q", want, got.told)
		}
	}
	if got.code != 4 || strings.Count(got.out, "\n") != 1 || !strings.Contains(got.out, "/calm  Ready: Installed 2.0.0\n") {
		t.Errorf("%+v", got)
	}
}

// TestWaitIsInterrupted: with the exit code that shells know.
func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	kubeconfig, err := env.KubeconfigAs("stops-in-"+namespace, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	played(t, namespace, installation("app", "", "{}"))
	ctx, interrupt := context.WithCancel(t.Context())
	ended := begin(ctx, kubeconfig, "wait", "app", "-n", namespace)
	watching(t, "stops-in-"+namespace)
	interrupt()
	if got := ended(); got.code != 130 || got.told != "wait for ModuleInstallation "+namespace+"/app: interrupted\n" {
		t.Errorf("%+v", got)
	}
}

// TestWaitSaysWhatHelps: what there is not, and what cannot be waited for.
func TestWaitSaysWhatHelps(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	for name, tc := range map[string]struct {
		args      []string
		code      int
		out, told string
	}{
		"Missing": {[]string{"mi/none"}, 2, "", "not found"},
		"Gone":    {[]string{"mi/none", "--for", "gone"}, 0, "ModuleInstallation " + namespace + "/none  gone\n", ""},
		"Aim":     {[]string{"mi/none", "--for", "happy"}, 3, "", "it is one of: ready, healthy, uptodate, version=V, gone"},
		"Version": {[]string{"mi/none", "--for", "version="}, 3, "", "--for version= is nothing to wait for"},
		"Kind":    {[]string{"gitrepo/app", "--for", "healthy"}, 3, "", "this is for moduleinstallations"},
		"None":    {[]string{"gitrepo", "--all"}, 0, "", "There are none in namespace " + namespace},
		"Unnamed": {nil, 3, "", "no object is named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"wait", "-n", namespace}, tc.args...)...)
			if got.code != tc.code || !strings.HasSuffix(got.out, tc.out) || !strings.Contains(got.told, tc.told) {
				t.Errorf("%+v", got)
			}
		})
	}
}
