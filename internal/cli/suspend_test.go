package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/view"
)

const generator = "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: app}\n" +
	"spec: {sources: [{alias: a, kind: GitRepository, name: git}], artifacts: [{name: out, copy: [{from: '@a/**', to: '@artifact/'}]}]}\n"

// TestSuspendAndResume: with who did it, why and when, for all kinds that are suspended, and without a trace afterwards.
func TestSuspendAndResume(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for name, text := range map[string]string{
		"GitRepository":      repository("app", ""),
		"ModuleInstallation": installation("app", "", "{}"),
		"ArtifactGenerator":  generator,
		"Repository":         "apiVersion: packages.sluice.dev/v1alpha1\nkind: Repository\nmetadata: {name: app}\nspec: {gitRepositoryRef: {name: git}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			namespace := env.NewNamespace(t)
			o := played(t, namespace, text)
			before := o.get()
			kubeconfig, err := env.KubeconfigAs("jane-of-"+namespace, "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			say := func(command, want string, further ...string) {
				t.Helper()
				got := run(t, kubeconfig, append([]string{command, name + "/app", "-n", namespace}, further...)...)
				if diff := cmp.Diff([]string{"✔ " + name + " NS/app  " + want}, untimed(got.out, namespace)); diff != "" || got.code != 0 || got.told != "" {
					t.Errorf("ended with %d, told %q, -want +got:\n%s", got.code, got.told, diff)
				}
			}
			say("suspend", "suspended", "--reason", "a move")
			suspended := o.get()
			at, err := time.Parse(time.RFC3339, suspended.GetAnnotations()[view.SuspendedAt])
			want := view.Fact{State: view.Suspended, Since: at, Message: "Suspended by jane-of-" + namespace + ": a move"}
			fact := view.Of(suspended)
			fact.Reason = ""
			if diff := cmp.Diff(want, fact); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			say("suspend", "suspended already by jane-of-"+namespace+": a move", "--reason", "another")
			if o.get().GetResourceVersion() != suspended.GetResourceVersion() {
				t.Error("it was written to again")
			}
			say("resume", "resumed")
			after := o.get()
			if view.IsSuspended(after) || !cmp.Equal(before.Object["spec"], after.Object["spec"]) || len(after.GetAnnotations()) != len(before.GetAnnotations()) {
				t.Errorf("left behind: %v %v", after.Object["spec"], after.GetAnnotations())
			}
			say("resume", "not suspended")
			if o.get().GetResourceVersion() != after.GetResourceVersion() {
				t.Error("it was written to again")
			}
		})
	}
}

// TestGetSaysWhoSuspended: and why, since when.
func TestGetSaysWhoSuspended(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	store(t, namespace, strings.Replace(installation("app", ", suspend: true", "{conditions: "+condition("True", "Installed", "Installed 2.0.0")+"}"), "{name: app,",
		"{name: app, annotations: {sluice.dev/suspended-by: jane, sluice.dev/suspended-reason: \"a\\u202e move\", sluice.dev/suspended-at: '2020-01-01T00:00:00Z'},", 1))
	got := squeezed(run(t, env.Kubeconfig, "get", "-n", namespace).out)
	if want := `app foo Suspended AGO Suspended by jane: a\u202e move`; len(got) != 2 || got[1] != want {
		t.Errorf("%q", got)
	}
}

// TestSuspendAll: all of the kind, or those with the labels, and no others.
func TestSuspendAll(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	calm, held := played(t, namespace, installation("calm", "", "{}")), played(t, namespace, installation("held", "", "{}"))
	app := played(t, namespace, repository("app", ""))
	if got := run(t, env.Kubeconfig, "suspend", "-l", "of=calm", "-n", namespace); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if !view.IsSuspended(calm.get()) || view.IsSuspended(held.get()) || view.IsSuspended(app.get()) {
		t.Error("others are suspended")
	}
	if got := run(t, env.Kubeconfig, "suspend", "mi", "--all", "-n", namespace); got.code != 0 || strings.Count(got.out, "\n") != 2 {
		t.Fatalf("%+v", got)
	}
	if !view.IsSuspended(held.get()) || view.IsSuspended(app.get()) {
		t.Error("others are suspended")
	}
}

// TestResumeAndWait: what was said while it was suspended is no answer.
func TestResumeAndWait(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for name, text := range map[string]string{
		"GitRepository": repository("app", ", suspend: true"),
		"ArtifactGenerator": strings.Replace(generator, "{name: app}", "{name: app, annotations: {source.extensions.fluxcd.io/reconcile: disabled}}", 1) +
			"status: {conditions: " + condition("False", "Failed", "of old") + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			namespace := env.NewNamespace(t)
			o := played(t, namespace, text)
			ended := begin(t.Context(), env.Kubeconfig, "resume", name, "app", "-n", namespace, "--wait")
			token := o.asked()
			if view.IsSuspended(o.get()) {
				t.Error("it is asked for before it is resumed")
			}
			o.answers(token, "True", "Succeeded", "stored")
			got := ended()
			want := []string{"✔ " + name + " NS/app  resumed", "✔ " + name + " NS/app  unchanged"}
			if diff := cmp.Diff(want, untimed(got.out, namespace)); diff != "" || got.code != 0 {
				t.Errorf("ended with %d, told %q, -want +got:\n%s", got.code, got.told, diff)
			}
		})
	}
}

// TestSuspendSaysWhatHelps: nothing is suspended unless all can be.
func TestSuspendSaysWhatHelps(t *testing.T) {
	t.Parallel()
	namespace, empty := env.NewNamespace(t), env.NewNamespace(t)
	app := played(t, namespace, repository("app", ""))
	for name, tc := range map[string]struct {
		args []string
		code int
		told []string
	}{
		"Kind":    {[]string{"suspend", "mt/foo"}, 3, []string{"moduletemplates cannot be suspended", "this is for moduleinstallations, gitrepositories"}},
		"Missing": {[]string{"suspend", "gitrepo", "app", "none"}, 2, []string{"not found"}},
		"Unnamed": {[]string{"resume", "gitrepo"}, 3, []string{"no object is named"}},
		"None":    {[]string{"suspend", "--all", "-n", empty}, 0, []string{"There are none in namespace " + empty}},
		"Timeout": {[]string{"resume", "gitrepo/app", "--wait", "--timeout", "-1s"}, 3, []string{"--timeout"}},
		"NoPlan":  {[]string{"resume", "mi/app", "--yes"}, 3, []string{"--yes is for plans", "add --plan"}},
		"NoPlace": {[]string{"resume", "mi/app", "--system-namespace", "a"}, 3, []string{"--system-namespace is for plans"}},
		"Nobody":  {[]string{"resume", "mi/app", "--plan"}, 3, []string{"nobody can be asked", "--yes resumes"}},
		"Planned": {[]string{"resume", "gitrepo/app", "--plan", "--yes"}, 3, []string{"gitrepositories has no plan"}},
		"Group":   {[]string{"resume", "sources", "--all", "--plan", "--yes"}, 3, []string{" has no plan", "this is for moduleinstallations"}},
		"NoWait":  {[]string{"resume", "gitrepo/app", "--timeout", "1m"}, 3, []string{"--timeout is for what is waited for", "add --wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{tc.args[0], "-n", namespace}, tc.args[1:]...)...)
			for _, want := range tc.told {
				if !strings.Contains(got.told, want) {
					t.Errorf("%q is not told in %q", want, got.told)
				}
			}
			if got.code != tc.code || got.out != "" || view.IsSuspended(app.get()) {
				t.Errorf("ended with %d: %q", got.code, got.out)
			}
		})
	}
}
