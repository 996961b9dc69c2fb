package cluster_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestStages(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason, group, kind string
		stage               int
	}{
		{"a kind before its objects", "apiextensions.k8s.io", "CustomResourceDefinition", cluster.StageDefinitions},
		{"a namespace before what lives in it", "", "Namespace", cluster.StageDefinitions},
		{"a class before what names it", "scheduling.k8s.io", "PriorityClass", cluster.StageDefinitions},
		{"rights before what uses them", "rbac.authorization.k8s.io", "ClusterRoleBinding", cluster.StageSupport},
		{"configuration before what mounts it", "", "Secret", cluster.StageSupport},
		{"an address before what is told it", "", "Service", cluster.StageSupport},
		{"a fence before what it fences in", "networking.k8s.io", "NetworkPolicy", cluster.StageSupport},
		{"a workload", "apps", "Deployment", cluster.StageWorkloads},
		{"a pod", "", "Pod", cluster.StageWorkloads},
		{"a route to workloads", "networking.k8s.io", "Ingress", cluster.StageWorkloads},
		{"an object of a CRD", "example.com", "Thing", cluster.StageCustom},
		{"an object of a CRD under Kubernetes' own name", "gateway.networking.k8s.io", "Gateway", cluster.StageCustom},
		{"another group's Namespace is no Namespace", "example.com", "Namespace", cluster.StageCustom},
		{"a webhook after its server", "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", cluster.StageAdmission},
		{"an API after its server", "apiregistration.k8s.io", "APIService", cluster.StageAdmission},
	}
	for _, tc := range cases {
		gvk := schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: tc.kind}
		if stage := cluster.Stage(gvk); stage != tc.stage {
			t.Errorf("%s: %s is in stage %d; want %d", tc.reason, gvk.GroupKind(), stage, tc.stage)
		}
	}
}
