package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leased is a lease that was renewed at that time.
func leased(namespace, name, holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NewMicroTime(renewed)), AcquireTime: new(metav1.NewMicroTime(renewed)),
	}}
}

// TestOverviewShowsWhatRuns: versions and the leader, asked for once in a while; and for whom they may not be read, which right is missing.
func TestOverviewShowsWhatRuns(t *testing.T) {
	namespace, other := env.NewNamespace(t), env.NewNamespace(t)
	labels := map[string]string{"app.kubernetes.io/name": "sluice"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controllers", Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/sluice:9.8.7"}}}},
	}}
	for _, obj := range []client.Object{
		deployment, leased(namespace, "source-controller-leader-election", "sluice-abc_0123", time.Now()),
		leased(namespace, "source-controller-leader-election-11223344", "sluice-gone_4567", time.Now().Add(-2*time.Hour)), leased(namespace, "something-else", "stranger", time.Now()),
	} {
		if err := env.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	// Other tests that ask for the namespace of the controllers find one of them, or none.
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), deployment) })
	user := "watcher-of-" + namespace
	kubeconfig, err := env.KubeconfigAs(user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b := opened(t, kubeconfig, "-n", namespace)
	page := b.eventually("", "sluice-abc")
	for _, want := range []string{"This program", "registry.example.com/sluice:9.8.7, Deployment " + namespace + "/controllers, 0 ready", "sluice-abc", namespace + "/source-controller-leader-election-11223344", "nobody"} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "stranger") || strings.Contains(page, "sluice-gone") {
		t.Errorf("the overview names who does not lead: %s", page)
	}
	for range 3 {
		b.page("")
	}
	requests, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]int{}
	for _, r := range requests {
		// The usual namespace of the controllers is looked into before all others are.
		if r.Verb == "list" && (r.Object.Resource == "deployments" && r.Object.Namespace == "" || r.Object.Resource == "leases" && r.Object.Namespace == namespace) {
			lists[r.Object.Resource]++
		}
	}
	// A machine may be so slow that what is known grows old meanwhile.
	if most := 1 + int(time.Since(began)/(30*time.Second)); lists["deployments"] > most || lists["leases"] > most {
		t.Errorf("lists: %v, want at most %d", lists, most)
	}
	if page := opened(t, reader(t, other), "-n", other).eventually("", "look for the Deployment of the controllers: forbidden"); !strings.Contains(page, "ask for the ClusterRole view") || strings.Contains(page, "9.8.7") {
		t.Errorf("one who may not read it gets %s", page)
	}
}

// TestNobodyWaitsForDiscoveryWithoutEnd: whoever asks for a kind that is not known yet waits for the same answer.
func TestNobodyWaitsForDiscoveryWithoutEnd(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, installation("foo", "", fmt.Sprintf("{inventory: {name: foo, members: 1, contents: [{version: v1, kind: ConfigMap, namespaces: [%s], count: 1}]}}", namespace)))
	server := before(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api" {
			return false
		}
		<-r.Context().Done()
		return true
	})
	page := opened(t, env.Kubeconfig, "--server", server).page("o/" + installations + "/" + namespace + "/foo")
	for _, want := range []string{" exceeded", "not shown: the kind could not be listed"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page: %s", want, page)
		}
	}
	if strings.Contains(page, "does not serve the kind") {
		t.Error("that nobody knows whether the kind is there is told as that it is not there")
	}
}
