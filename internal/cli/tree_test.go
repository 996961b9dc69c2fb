package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine"
)

// member stores an object of the installation foo, and gives its UID.
func member(t *testing.T, namespace, text string) (uid string) {
	t.Helper()
	labelled := fmt.Sprintf("metadata: {labels: {%s: %s, %s: foo, %s: %s}, ", engine.Label, engine.InstallationID("foo", namespace), engine.InstallationLabel, engine.NamespaceLabel, namespace)
	return string(played(t, namespace, strings.Replace(text, "metadata: {", labelled, 1)).get().GetUID())
}

// rolling is an installation foo from a Git repository by way of a release, with three ConfigMaps, a Secret and a Deployment that does
// not come up. One more ConfigMap is on record.
func rolling(t *testing.T) (namespace string) {
	t.Helper()
	namespace = env.NewNamespace(t)
	store(t, namespace, strings.Replace(repository("app", ""), "https://", "https://user:passw0rd@", 1))
	store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-2.0.0}\n"+
		"spec: {moduleName: foo, version: 2.0.0, channel: fast, artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: app}}}\n"+
		"status: {conditions: "+condition("True", "Succeeded", "It is offered")+"}")
	store(t, namespace, installation("foo", "", fmt.Sprintf("{current: {version: 2.0.0, template: foo-2.0.0, namespace: %s}, conditions: %s, inventory: {name: foo, members: 6, contents: ["+
		"{version: v1, kind: ConfigMap, namespaces: [%[1]s], count: 4}, {version: v1, kind: Secret, namespaces: [%[1]s], count: 1}, "+
		"{group: apps, version: v1, kind: Deployment, namespaces: [%[1]s], count: 1}]}}", namespace, condition("True", "Installed", "Installed 2.0.0"))))
	for _, name := range []string{"a", "b", "c"} {
		member(t, namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}")
	}
	member(t, namespace, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: canary}")
	const podSpec = "{containers: [{name: c, image: pause}]}"
	deployment := member(t, namespace, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: foo}\nspec: {selector: {matchLabels: {app: foo}}, template: {metadata: {labels: {app: foo}}, spec: "+podSpec+"}}")
	set := played(t, namespace, fmt.Sprintf("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: foo-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: foo, uid: %s, controller: true}]}\n"+
		"spec: {selector: {matchLabels: {app: foo}}, template: {metadata: {labels: {app: foo}}, spec: %s}}", deployment, podSpec)).get().GetUID()
	store(t, namespace, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: foo-1-x, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: foo-1, uid: %s, controller: true}]}\n"+
		"spec: %s\nstatus: {phase: Pending, containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: No such image}}}]}", set, podSpec))
	return namespace
}

// TestTree: from the source to the Pods, from whichever object on the way.
func TestTree(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := rolling(t)
	const revision = "revision main@sha1:111111111111"
	root := []string{
		"https://example.com/app",
		"└─ GitRepository NS/app ✔ Ready " + revision,
		"└─ ModuleTemplate NS/foo-2.0.0 ✔ Ready module foo, version 2.0.0, channel fast",
	}
	installed := "└─ ModuleInstallation NS/foo ✔ Ready module foo, version 2.0.0"
	trouble := []string{
		"├─ ConfigMap ×1 not found: deleted, or without the label of the installation",
		"└─ Deployment NS/foo ◐ Progressing Replicas: 0/1",
		"└─ Pod NS/foo-1-x ✗ Failed ImagePullBackOff: No such image",
	}
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"Installation": {[]string{"foo"}, append(append(append([]string{}, root...), installed, "├─ ConfigMap ×3 ✔ Ready", "├─ Secret NS/s ✔ Ready"), trouble...)},
		"Problems":     {[]string{"foo", "--problems"}, append(append(append([]string{}, root...), installed), trouble...)},
		"Depth":        {[]string{"foo", "--depth", "0"}, append(append([]string{}, root...), installed)},
		"Source":       {[]string{"gitrepo/app"}, append(append([]string{}, root...), installed)},
		"Template":     {[]string{"mt", "foo-2.0.0"}, append(append([]string{}, root...), installed)},
		"Calm":         {[]string{"mt", "foo-2.0.0", "--problems"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, env.Kubeconfig, append([]string{"tree", "-n", namespace}, tc.args...)...)
			lines := squeezed(strings.ReplaceAll(strings.ReplaceAll(got.out, namespace, "NS"), "│", ""))
			if diff := cmp.Diff(tc.want, lines); diff != "" || got.code != 0 {
				t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
			}
		})
	}
}

// TestTreeIsFrugal: a kind and namespace is listed once, and of what has no health the metadata alone: no Secret is read.
func TestTreeIsFrugal(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	kubeconfig, err := env.KubeconfigAs("frugal-in-"+namespace, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, kubeconfig, "tree", "foo", "-n", namespace, "-o", "json")
	var told struct {
		Kind string
		Root struct{ Under []unstructured.Unstructured }
	}
	if err := json.Unmarshal([]byte(got.out), &told); err == nil && told.Kind != "Tree" {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	requests, err := env.Requests("frugal-in-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]int{}
	for _, r := range requests {
		if r.Verb == "list" {
			lists[r.Object.Resource]++
		}
	}
	want := map[string]int{"configmaps": 1, "secrets": 1, "deployments": 1, "replicasets": 1, "pods": 1}
	if diff := cmp.Diff(want, lists); diff != "" || strings.Contains(got.out, "canary") {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTreeShowsWhatMayBeRead: and says what is missing.
func TestTreeShowsWhatMayBeRead(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	got := run(t, reader(t, namespace), "tree", "foo", "-n", namespace)
	for _, want := range []string{"get ModuleTemplate", "list the ConfigMap objects in namespace " + namespace + ": forbidden", "ask for the ClusterRole view", `cannot list resource "secrets" in API group "" in the namespace "` + namespace + "\"\n  ask for the ClusterRole edit\n"} {
		if !strings.Contains(got.told, want) {
			t.Errorf("%q is not told: %s", want, got.told)
		}
	}
	if got.code != 2 || !strings.Contains(got.out, "not shown: the kind could not be listed") {
		t.Errorf("ended with %d: %s", got.code, got.out)
	}
}

// TestTreeWithoutTrouble: programs get an answer too, and what could not be read is not called well.
func TestTreeWithoutTrouble(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	got := run(t, env.Kubeconfig, "tree", "mt", "foo-2.0.0", "-n", namespace, "--problems", "-o", "json")
	var told map[string]any
	if err := json.Unmarshal([]byte(got.out), &told); err != nil || told["kind"] != "Tree" || told["root"] != nil || got.code != 0 {
		t.Errorf("ended with %d, %v: %s", got.code, err, got.out)
	}
	kubeconfig := reader(t, namespace)
	store(t, namespace, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: git}\nrules: [{apiGroups: [source.toolkit.fluxcd.io], resources: [gitrepositories], verbs: [get]}]")
	store(t, namespace, "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: git}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: git}\n"+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: user-of-"+namespace+"}]")
	got = run(t, kubeconfig, "tree", "gitrepo/app", "-n", namespace, "--problems")
	if got.code != 2 || !strings.Contains(got.told, "All that could be read is well") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}

// TestTreeOfRings: what takes from each other has an end, and what takes from many is not told once for every way to it.
func TestTreeOfRings(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	taking := func(name string, from ...string) {
		include := ""
		for _, one := range from {
			include += "{repository: {name: " + one + "}, toPath: " + one + "}, "
		}
		store(t, namespace, repository(name, ", include: ["+include+"]"))
	}
	taking("root")
	taking("ring-1", "root", "ring-2")
	taking("ring-2", "root", "ring-1")
	const layers = 14
	left, right := "root", "root"
	for i := range layers {
		for _, side := range []string{"left", "right"} {
			taking(fmt.Sprintf("%s-%d", side, i), left, right)
		}
		left, right = fmt.Sprintf("left-%d", i), fmt.Sprintf("right-%d", i)
	}
	got := run(t, env.Kubeconfig, "tree", "gitrepo/root", "-n", namespace, "-o", "wide")
	for _, name := range []string{"ring-1", "ring-2", left, right} {
		if !strings.Contains(got.out, namespace+"/"+name+" ") {
			t.Errorf("%s is missing: %s", name, got.out)
		}
	}
	// Each is told once for each that it takes from, below the address and the root.
	if lines := strings.Count(got.out, "\n"); got.code != 0 || lines > 2+2*2+2*2*layers {
		t.Errorf("ended with %d and %d lines, %s", got.code, lines, got.told)
	}
}

// TestTreeOfALongWay: lines are not longer the deeper they are.
func TestTreeOfALongWay(t *testing.T) {
	t.Parallel()
	namespace, last := env.NewNamespace(t), ""
	const many = 100
	for i := range many {
		spec := ""
		if last != "" {
			spec = ", include: [{repository: {name: " + last + "}}]"
		}
		last = fmt.Sprint("at-", i)
		store(t, namespace, repository(last, spec))
	}
	got := run(t, env.Kubeconfig, "tree", "gitrepository/at-0", "-n", namespace)
	longest := 0
	for line := range strings.Lines(got.out) {
		longest = max(longest, utf8.RuneCountInString(line))
	}
	if got.code != 0 || strings.Count(got.out, "\n") < many || longest > 250 {
		t.Errorf("ended with %d, %s: the longest line has %d characters: %s", got.code, got.told, longest, got.out)
	}
}
