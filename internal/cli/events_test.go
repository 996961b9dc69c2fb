package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// events tells of an object that is there, at a time long ago that the number orders.
func tells(t *testing.T, gvk schema.GroupVersionKind, namespace, name string, order int64, reason string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	at := metav1.Unix(1577836800+order, 0)
	if err := env.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name, UID: obj.GetUID(),
		},
		Type: "Warning", Reason: reason, Message: "m\x1b[31m", FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}); err != nil {
		t.Fatal(err)
	}
}

var (
	repositories = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
	replicaSets  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	pods         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// TestEvents: of all on the object's road, by time, and of nothing else.
func TestEvents(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	store(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: stranger}\nspec: {containers: [{name: c, image: i}]}")
	tells(t, pods, namespace, "foo-1-x", 3, "Failed")
	tells(t, pods, namespace, "stranger", 2, "Started")
	tells(t, replicaSets, namespace, "foo-1", 2, "SuccessfulCreate")
	tells(t, repositories, namespace, "app", 1, "NewArtifact")
	got := run(t, env.Kubeconfig, "events", "foo", "-n", namespace)
	want := []string{
		"LAST TIMES TYPE REASON OBJECT MESSAGE",
		"AGO 1 Warning NewArtifact GitRepository NS/app m\\x1b[31m",
		"AGO 1 Warning SuccessfulCreate ReplicaSet NS/foo-1 m\\x1b[31m",
		"AGO 1 Warning Failed Pod NS/foo-1-x m\\x1b[31m",
	}
	if diff := cmp.Diff(want, squeezed(strings.ReplaceAll(got.out, namespace, "NS"))); diff != "" || got.code != 0 {
		t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
	}
	if got := run(t, env.Kubeconfig, "events", "foo", "-n", namespace, "--since", "1h"); got.out != "" || got.code != 0 || !strings.Contains(got.told, "No event") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}

// TestEventsGoOn: with what happens to objects that came since, too.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	tells(t, pods, namespace, "foo-1-x", 1, "Failed")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, wait := beginShown(ctx, env.Kubeconfig, "events", "foo", "-n", namespace, "-w")
	testenv.Eventually(t, "the events of before are shown", func(context.Context) (bool, string) { return strings.Contains(out(), "Failed"), out() })
	set := (object{t, replicaSets, namespace, "foo-1"}).get()
	store(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: foo-1-y, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: foo-1, uid: "+string(set.GetUID())+", controller: true}]}\nspec: {containers: [{name: c, image: i}]}")
	store(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: stranger}\nspec: {containers: [{name: c, image: i}]}")
	member(t, namespace, "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: foo-2}\nspec: {selector: {matchLabels: {app: foo}}, template: {metadata: {labels: {app: foo}}, spec: {containers: [{name: c, image: i}]}}}")
	tells(t, pods, namespace, "stranger", 2, "Strange")
	tells(t, replicaSets, namespace, "foo-2", 2, "Created")
	testenv.Eventually(t, "the event of a new member is shown", func(context.Context) (bool, string) { return strings.Contains(out(), "foo-2"), out() })
	tells(t, pods, namespace, "foo-1-y", 3, "Scheduled")
	testenv.Eventually(t, "the event of the new Pod is shown", func(context.Context) (bool, string) { return strings.Contains(out(), "foo-1-y"), out() })
	stop()
	if got := wait(); got.code != 130 || strings.Contains(got.out, "Strange") || strings.Count(got.out, "Failed") != 1 || strings.TrimSpace(got.told) != "" {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}

// TestWatchesGoOnWithWhatMayBeRead: a tenant who may not read all where the release is from is told so at once, and of the rest.
func TestWatchesGoOnWithWhatMayBeRead(t *testing.T) {
	t.Parallel()
	namespace, system := rolling(t), env.NewNamespace(t)
	store(t, system, repository("app", ""))
	store(t, system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-2.0.0}\n"+
		"spec: {moduleName: foo, version: 2.0.0, channel: fast, artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: app}}}\n")
	object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}.patch("status: {current: {namespace: " + system + "}}")
	reads := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
	}
	kubeconfig := grant(t, namespace, reads("*", "*"))
	bind(t, namespace, system, reads("modules.sluice.dev", "moduletemplates"))
	tells(t, pods, namespace, "foo-1-x", 1, "Failed")
	for command, want := range map[string]string{"events": "list the events of namespace " + system, "tree": `get GitRepository "app" in namespace "` + system + `"`} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out, wait := beginShown(ctx, kubeconfig, command, "foo", "-n", namespace, "-w")
		testenv.Eventually(t, "what was before is shown", func(context.Context) (bool, string) { return strings.Contains(out(), "foo-1-x"), out() })
		tells(t, pods, namespace, "foo-1-x", 2, "Scheduled")
		object{t, pods, namespace, "foo-1-x"}.patch("status: {containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: Scheduled, message: '" + command + "'}}}]}")
		testenv.Eventually(t, "what comes after is shown", func(context.Context) (bool, string) { return strings.Contains(out(), "Scheduled"), out() })
		stop()
		if got := wait(); got.code != 130 || !strings.Contains(got.told, want) {
			t.Errorf("%s ended with %d: %s", command, got.code, got.told)
		}
	}
	if got := run(t, kubeconfig, "events", "foo", "-n", namespace, "--since", "1s"); got.code != 2 || strings.Contains(got.told, "No event is kept") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}

// TestEventsOfAllOrigins: also of those that an object takes from beside the first, and of members that are in no namespace.
func TestEventsOfAllOrigins(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	store(t, namespace, repository("other", ""))
	store(t, namespace, "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: made}\n"+
		"spec: {sources: [{alias: a, kind: GitRepository, name: app}, {alias: b, kind: GitRepository, name: other}], artifacts: [{name: out, copy: [{from: '@a/**', to: '@artifact/'}]}]}\n")
	tells(t, repositories, namespace, "other", 1, "NewArtifact")
	if got := run(t, env.Kubeconfig, "events", "ag/made", "-n", namespace); got.code != 0 || !strings.Contains(got.out, "GitRepository "+namespace+"/other") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	name := "role-of-" + namespace
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{engine.Label: engine.InstallationID("foo", namespace)}}}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	tells(t, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), metav1.NamespaceDefault, name, 2, "Aggregated")
	object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}.patch(
		"status: {inventory: {contents: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, count: 1}]}}")
	if got := run(t, env.Kubeconfig, "events", "foo", "-n", namespace); got.code != 0 || !strings.Contains(got.out, "ClusterRole "+name) {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}

// TestEventsOfACircle: objects that own each other are of interest to nobody, and do not keep the command from going on.
func TestEventsOfACircle(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	tells(t, pods, namespace, "foo-1-x", 1, "Failed")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, wait := beginShown(ctx, env.Kubeconfig, "events", "foo", "-n", namespace, "-w")
	testenv.Eventually(t, "the events of before are shown", func(context.Context) (bool, string) { return strings.Contains(out(), "Failed"), out() })
	maps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, name := range []string{"one", "other"} {
		store(t, namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}")
	}
	for name, owner := range map[string]string{"one": "other", "other": "one"} {
		uid := object{t, maps, namespace, owner}.get().GetUID()
		object{t, maps, namespace, name}.patch("metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: " + owner + ", uid: " + string(uid) + ", controller: true}]}")
	}
	tells(t, maps, namespace, "one", 2, "Strange")
	tells(t, pods, namespace, "foo-1-x", 3, "Scheduled")
	testenv.Eventually(t, "what comes after is shown", func(context.Context) (bool, string) { return strings.Contains(out(), "Scheduled"), out() })
	stop()
	if got := wait(); got.code != 130 || strings.Contains(got.out, "Strange") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
