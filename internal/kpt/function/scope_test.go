package function

import "testing"

func TestScopesOfKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		apiVersion, group, kind string
		want                    scope
	}{
		{"v1", "", "ConfigMap", scopeNamespace},
		{"v1", "", "Namespace", scopeCluster},
		{"apps/v1", "apps", "Deployment", scopeNamespace},
		{"apps/v1beta2", "apps", "Deployment", scopeNamespace},
		{"extensions/v1beta1", "extensions", "Deployment", scopeNamespace},
		{"extensions/v1beta1", "extensions", "Ingress", scopeNamespace},
		{"autoscaling/v2beta2", "autoscaling", "HorizontalPodAutoscaler", scopeNamespace},
		{"policy/v1beta1", "policy", "PodDisruptionBudget", scopeNamespace},
		{"rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io", "ClusterRole", scopeCluster},
		{"apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io", "CustomResourceDefinition", scopeCluster},
		{"example.com/v1", "example.com", "Deployment", scopeUnknown},
		{"serving.knative.dev/v1", "serving.knative.dev", "Service", scopeUnknown},
		{"kpt.dev/v1", "kpt.dev", "Kptfile", scopeUnknown},
	} {
		if got := builtIn(groupKind{c.group, c.kind}, c.apiVersion); got != c.want {
			t.Errorf("%s %s: %v, and not %v", c.apiVersion, c.kind, got, c.want)
		}
	}
}
