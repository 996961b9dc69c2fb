package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/tests/testenv"
)

// store puts an object into the namespace, and then its status.
func store(t *testing.T, namespace, text string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetNamespace(namespace)
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["in"] = namespace
	obj.SetLabels(labels)
	status := obj.Object["status"]
	if err := env.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if status == nil {
		return
	}
	obj.Object["status"] = status
	if err := env.Client.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// installation is one of module foo, with its status.
func installation(name, spec, status string) string {
	return fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: %s, labels: {of: %s}}\nspec: {module: {name: foo}%s}\nstatus: %s\n",
		name, name, spec, status)
}

// condition is Ready, long ago.
func condition(status, reason, message string) string {
	return fmt.Sprintf("[{type: Ready, status: '%s', reason: %s, message: %q, observedGeneration: 1, lastTransitionTime: '2020-01-01T00:00:00Z'}]", status, reason, message)
}

// three are installations: one that is ready, one that holds back a change, and one that fails.
func three(t *testing.T) (namespace string) {
	t.Helper()
	namespace = env.NewNamespace(t)
	store(t, namespace, installation("calm", "", "{resolution: {module: foo, selectedBy: channel/fast}, current: {version: 2.0.0, template: foo-2.0.0}, conditions: "+condition("True", "Installed", "Installed 2.0.0")+"}"))
	store(t, namespace, installation("held", "", "{current: {version: 1.0.0}, pending: {version: 2.0.0, reason: AwaitingApproval, message: Approve the plan}, conditions: "+condition("True", "Installed", "Installed 1.0.0")+"}"))
	store(t, namespace, installation("broken", ", suspend: false", "{conditions: "+condition("False", "HealthCheckFailed", "StatefulSet\n\x1b[31mredis\r\u202e")+"}"))
	return namespace
}

// longAgo is how a time span of years is written.
var longAgo = regexp.MustCompile(`^\d+y(\d+d)?$`)

// squeezed is a table without what fills its columns, and without how long ago something was.
func squeezed(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i, word := range words {
			if longAgo.MatchString(word) {
				words[i] = "AGO"
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// TestGet: tables, objects, and the ways to choose among them.
func TestGet(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := three(t)
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: repo}\nspec: {url: 'https://example.com/repo', interval: 1m}\n"+
		"status: {artifact: {path: a, url: 'http://a', revision: 'main@sha1:0123456789abcdef0123456789abcdef01234567', lastUpdateTime: '2020-01-01T00:00:00Z', digest: 'sha256:"+strings.Repeat("0", 64)+"'}, conditions: "+
		condition("True", "Succeeded", "stored")+"}")
	const titles = "NAME MODULE FOLLOWS VERSION PENDING STATE SINCE MESSAGE"
	broken := `broken foo ✗ Failed AGO HealthCheckFailed: StatefulSet\n\x1b[31mredis\r\u202e`
	calm := "calm foo channel/fast 2.0.0 ✔ Ready AGO Installed 2.0.0"
	held := "held foo 1.0.0 2.0.0 ‖ Held AwaitingApproval: Approve the plan"
	repo := "repo main@sha1:0123456789ab ✔ Ready AGO stored"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Default":   {"installations, if nothing is said", nil, []string{titles, broken, calm, held}},
		"Kind":      {"by the kind's short name", []string{"mi"}, []string{titles, broken, calm, held}},
		"Names":     {"some of them", []string{"mi", "held", "calm"}, []string{titles, calm, held}},
		"Bare":      {"a name is an installation's", []string{"calm"}, []string{titles, calm}},
		"Pair":      {"as kubectl has them", []string{"ModuleInstallation/calm"}, []string{titles, calm}},
		"State":     {"in some states", []string{"--state", "Failed,Held"}, []string{titles, broken, held}},
		"Selector":  {"by their labels", []string{"-l", "of in (calm)"}, []string{titles, calm}},
		"Sort":      {"by who needs somebody most", []string{"--sort", "state"}, []string{titles, broken, held, calm}},
		"Source":    {"hashes are cut", []string{"gitrepo"}, []string{"NAME REVISION STATE SINCE MESSAGE", repo}},
		"NameOnly":  {"for other programs", []string{"-o", "name"}, []string{"moduleinstallation.modules.sluice.dev/broken", "moduleinstallation.modules.sluice.dev/calm", "moduleinstallation.modules.sluice.dev/held"}},
		"JSONPath":  {"for other programs", []string{"calm", "-o", "jsonpath={.status.current.version}"}, []string{"2.0.0"}},
		"Template":  {"for other programs", []string{"-o", "go-template={{range .items}}{{.metadata.name}} {{end}}"}, []string{"broken calm held"}},
		"Wide":      {"with all that there is", []string{"gitrepo/repo", "-o", "wide"}, []string{"NAME URL REVISION STATE SINCE MESSAGE", "repo https://example.com/repo main@sha1:0123456789abcdef0123456789abcdef01234567 ✔ Ready AGO stored"}},
		"All":       {"kind by kind", []string{"all"}, []string{titles, "moduleinstallation/" + broken, "moduleinstallation/" + calm, "moduleinstallation/" + held, "", "NAME REVISION STATE SINCE MESSAGE", "gitrepository/" + repo}},
		"Sources":   {"those that artifacts come from", []string{"sources"}, []string{"NAME REVISION STATE SINCE MESSAGE", "gitrepository/" + repo}},
		"TwoKinds":  {"of several kinds", []string{"gitrepo/repo", "mi/calm"}, []string{"NAME REVISION STATE SINCE MESSAGE", "gitrepository/" + repo, "", titles, "moduleinstallation/" + calm}},
		"Everybody": {"of all namespaces", []string{"-A", "-l", "of=calm,in=" + namespace}, []string{"NAMESPACE " + titles, namespace + " " + calm}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, env.Kubeconfig, append([]string{"get", "-n", namespace}, tc.args...)...)
			if diff := cmp.Diff(tc.want, squeezed(got.out)); diff != "" || got.code != 0 || got.told != "" {
				t.Errorf("%s: ended with %d, %q, -want +got:\n%s", tc.reason, got.code, got.told, diff)
			}
		})
	}
}

// TestGetGivesWholeObjects: as the API server has them, and without what only it needs.
func TestGetGivesWholeObjects(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	for format, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) }} {
		var one, all struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Items    []struct{ Metadata metav1.ObjectMeta }
		}
		if got := run(t, env.Kubeconfig, "get", "-n", namespace, "calm", "-o", format); got.code != 0 || read([]byte(got.out), &one) != nil {
			t.Fatalf("%+v", got)
		}
		if one.Kind != "ModuleInstallation" || one.Metadata.UID == "" || one.Metadata.ManagedFields != nil {
			t.Errorf("%s: %+v", format, one)
		}
		if got := run(t, env.Kubeconfig, "get", "-n", namespace, "-o", format); got.code != 0 || read([]byte(got.out), &all) != nil {
			t.Fatalf("%+v", got)
		}
		if all.Kind != "List" || len(all.Items) != 3 || all.Items[2].Metadata.Name != "held" {
			t.Errorf("%s: %+v", format, all)
		}
	}
}

// TestGetShowsLettersWhereThereAreNoOthers: the words tell the states apart.
func TestGetShowsLettersWhereThereAreNoOthers(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	namespace := three(t)
	got := squeezed(run(t, env.Kubeconfig, "get", "-n", namespace, "calm").out)
	if want := "calm foo channel/fast 2.0.0 Ready AGO Installed 2.0.0"; len(got) != 2 || got[1] != want {
		t.Errorf("got %q", got)
	}
}

// TestGetSaysWhatHelps: nobody is left with an empty list that looks like none.
func TestGetSaysWhatHelps(t *testing.T) {
	t.Parallel()
	namespace, empty := three(t), env.NewNamespace(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		told []string
	}{
		"Nothing":   {[]string{"-n", empty}, 0, []string{"There are none in namespace " + empty}},
		"Elsewhere": {[]string{"-n", empty, "mi/calm"}, 2, []string{`get ModuleInstallation "calm" in namespace "` + empty + `": not found`, "there is one of that name in ", "add -n "}},
		"Similar":   {[]string{"-n", namespace, "mi/brokem"}, 2, []string{"similar: broken"}},
		"OneOfTwo":  {[]string{"-n", namespace, "mi/calm", "mi/none"}, 2, []string{`"none"`, "not found"}},
		"Kind":      {[]string{"-n", namespace, "gitrepositry/a"}, 3, []string{"there is no kind gitrepositry", "similar: gitrepository"}},
		"BareKind":  {[]string{"-n", namespace, "gitrepositry"}, 2, []string{"if a kind was meant, similar: gitrepository"}},
		"State":     {[]string{"--state", "failed"}, 3, []string{"--state failed is none", "Failed"}},
		"Sort":      {[]string{"--sort", "age"}, 3, []string{"--sort age is no order"}},
		"Selector":  {[]string{"-l", "!!"}, 3, []string{"--selector"}},
		"Format":    {[]string{"-o", "xml"}, 3, []string{"xml"}},
		"Flag":      {[]string{"--no-such"}, 3, []string{"unknown flag", "sluice get --help"}},
		"Mixed":     {[]string{"mi", "a/b"}, 3, []string{"a/b stands beside names without a kind"}},
		"AllNames":  {[]string{"all", "a"}, 3, []string{"all takes no names"}},
		"Context":   {[]string{"--context", "elsewhere"}, 2, []string{"elsewhere"}},
		"Away":      {[]string{"all", "--server", "http://127.0.0.1:1"}, 2, []string{"no answer from the API server", "check --kubeconfig"}},
		"Login":     {[]string{"all", "--token", "expired"}, 2, []string{"does not take the login", "log in anew"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeconfig := env.Kubeconfig
			if name == "Login" {
				kubeconfig = anonymous(t)
			}
			got := run(t, kubeconfig, append([]string{"get"}, tc.args...)...)
			for _, want := range tc.told {
				if !strings.Contains(got.told, want) {
					t.Errorf("%q is not told in %q", want, got.told)
				}
			}
			if got.code != tc.code || strings.Count(got.told, "API server") > 2 {
				t.Errorf("ended with %d: %q", got.code, got.told)
			}
		})
	}
}

// reader is the kubeconfig of somebody who may read the installations of the namespace, and nothing else.
func reader(t *testing.T, namespace string) string {
	t.Helper()
	return grant(t, namespace, rbacv1.PolicyRule{APIGroups: []string{"modules.sluice.dev"}, Resources: []string{"moduleinstallations"}, Verbs: []string{"get", "list"}})
}

// TestGetShowsWhatMayBeRead: and names the rest, with the ClusterRole that grants it.
func TestGetShowsWhatMayBeRead(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	got := run(t, reader(t, namespace), "get", "all", "-n", namespace)
	if got.code != 2 || len(squeezed(got.out)) != 4 {
		t.Errorf("ended with %d: %s", got.code, got.out)
	}
	for _, want := range []string{"list gitrepositories in namespace " + namespace + ": forbidden: ", "ask for the ClusterRole sluice-view", "list packagerevisions"} {
		if !strings.Contains(got.told, want) {
			t.Errorf("%q is not told in %s", want, got.told)
		}
	}
}

// TestGetAsksOnce: a list is a request for each 500 objects, and nothing has to be discovered.
func TestGetAsksOnce(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	who := "counted-in-" + namespace
	for i := range 600 {
		store(t, namespace, fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: m%03d}\nspec: {}\n", i))
	}
	kubeconfig, err := env.KubeconfigAs(who, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, kubeconfig, "get", "modules", "-n", namespace); got.code != 0 || len(squeezed(got.out)) != 601 {
		t.Fatalf("ended with %d, %d lines: %s", got.code, len(squeezed(got.out)), got.told)
	}
	requests, err := env.Requests(who)
	if err != nil || len(requests) != 2 {
		t.Errorf("%v, %+v", err, requests)
	}
}

// TestCompletion: kinds, names and states, and nothing where nothing is known.
func TestCompletion(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"Kinds":   {[]string{"get", "modulet"}, []string{"moduletemplates"}},
		"Groups":  {[]string{"get", "s"}, []string{"sources"}},
		"Names":   {[]string{"get", "mi", ""}, []string{"broken", "calm", "held"}},
		"Further": {[]string{"get", "mi", "calm", ""}, []string{"broken", "held"}},
		"Pair":    {[]string{"get", "mi/c"}, []string{"mi/calm"}},
		"Unknown": {[]string{"get", "none", ""}, nil},
		"State":   {[]string{"get", "--state", "Fa"}, []string{"Failed"}},
		"States":  {[]string{"get", "--state", "Held,Re"}, []string{"Held,Ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			completes(t, tc.want, append([]string{"get", "--namespace", namespace}, tc.args[1:]...)...)
		})
	}
}

// completes waits until a shell is offered the words: where the API server does not answer in its time, it is offered none.
func completes(t *testing.T, want []string, args ...string) {
	t.Helper()
	testenv.Eventually(t, "words are offered", func(context.Context) (bool, string) {
		lines := strings.Split(strings.TrimSpace(run(t, env.Kubeconfig, append([]string{"__complete"}, args...)...).out), "\n")
		diff := cmp.Diff(want, lines[:len(lines)-1], cmpopts.EquateEmpty())
		return diff == "", "-want +got:\n" + diff
	})
}
