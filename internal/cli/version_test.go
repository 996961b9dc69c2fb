package cli_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVersion: of what is here, of what is there, and without an API server.
func TestVersion(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app.kubernetes.io/name": "sluice"}
	namespace := env.NewNamespace(t)
	if err := env.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sluice", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "sluice:v1.2.3"}}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	whole := run(t, env.Kubeconfig, "version")
	for _, want := range []string{"client ", "go1.", "Kubernetes v1.", "sluice:v1.2.3, Deployment " + namespace + "/sluice, 0 ready"} {
		if !strings.Contains(whole.out, want) || whole.code != 0 {
			t.Errorf("ended with %d, %s: %q is not in %s", whole.code, whole.told, want, whole.out)
		}
	}
	alone := run(t, "none", "version", "--client", "-o", "jsonpath={.client.go} {.server}")
	if alone.code != 0 || !strings.HasPrefix(alone.out, "go1.") || strings.Contains(alone.out, "Kubernetes") {
		t.Errorf("ended with %d: %s%s", alone.code, alone.out, alone.told)
	}
	if away := run(t, anonymous(t), "version"); away.code == 0 || !strings.Contains(away.out, "client ") {
		t.Errorf("ended with %d: %s%s", away.code, away.out, away.told)
	}
}

// TestHistory: that there were no attempts, and who has any.
func TestHistory(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, installation("new", "", "{}"))
	if none := run(t, env.Kubeconfig, "history", "new", "-n", namespace); none.code != 0 || none.out != "" || !strings.Contains(none.told, "Nothing has been installed yet.") {
		t.Errorf("ended with %d: %s%s", none.code, none.out, none.told)
	}
	if other := run(t, env.Kubeconfig, "history", "gitrepo/a", "-n", namespace); other.code != 3 {
		t.Errorf("ended with %d: %s", other.code, other.told)
	}
}
