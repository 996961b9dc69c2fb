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
		gate                bool
	}{
		{"a kind before its objects", "apiextensions.k8s.io", "CustomResourceDefinition", cluster.StageDefinitions, true},
		{"a namespace before what lives in it", "", "Namespace", cluster.StageDefinitions, true},
		{"a class before what names it", "scheduling.k8s.io", "PriorityClass", cluster.StageDefinitions, false},
		{"rights before what uses them", "rbac.authorization.k8s.io", "ClusterRoleBinding", cluster.StageSupport, false},
		{"configuration before what mounts it", "", "Secret", cluster.StageSupport, false},
		{"an address before what is told it", "", "Service", cluster.StageSupport, false},
		{"a fence before what it fences in", "networking.k8s.io", "NetworkPolicy", cluster.StageSupport, false},
		{"a workload", "apps", "Deployment", cluster.StageWorkloads, false},
		{"a pod", "", "Pod", cluster.StageWorkloads, false},
		{"a route to workloads", "networking.k8s.io", "Ingress", cluster.StageWorkloads, false},
		{"an object of a CRD", "example.com", "Thing", cluster.StageCustom, false},
		{"an object of a CRD under Kubernetes' own name", "gateway.networking.k8s.io", "Gateway", cluster.StageCustom, false},
		{"another group's Namespace is no Namespace", "example.com", "Namespace", cluster.StageCustom, false},
		{"a webhook after its server", "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", cluster.StageAdmission, false},
		{"an API after its server", "apiregistration.k8s.io", "APIService", cluster.StageAdmission, false},
	}
	for _, tc := range cases {
		gvk := schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: tc.kind}
		if stage, gate := cluster.Stage(gvk), cluster.Gate(gvk); stage != tc.stage || gate != tc.gate {
			t.Errorf("%s: %s is in stage %d, gate %t; want %d, %t", tc.reason, gvk.GroupKind(), stage, gate, tc.stage, tc.gate)
		}
	}
}
