package config_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTheUIReadsOurKindsAlone: it has no right to anything else, and none to write or to impersonate.
func TestTheUIReadsOurKindsAlone(t *testing.T) {
	t.Parallel()
	view := find[rbacv1.ClusterRole](t, "ClusterRole", "sluice-view").Rules
	role := ofUI[rbacv1.ClusterRole](t, "ClusterRole")
	if len(role.Rules) != len(view) {
		t.Fatalf("%d rules, where those who may see all have %d", len(role.Rules), len(view))
	}
	for i, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"list", "watch"}) || !slices.Equal(rule.APIGroups, view[i].APIGroups) || !slices.Equal(rule.Resources, view[i].Resources) {
			t.Errorf("rule %v, where those who may see all have %v", rule, view[i])
		}
	}
}

// TestTheUIIsRestricted: beside what the restricted profile asks for, its root is read-only, and what it mounts is its certificate.
func TestTheUIIsRestricted(t *testing.T) {
	t.Parallel()
	deployment := ofUI[appsv1.Deployment](t, "Deployment")
	pod := deployment.Spec.Template.Spec
	if *deployment.Spec.Replicas != 1 {
		t.Error("logins are in one pod's memory")
	}
	if root := pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("the root is not read-only")
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret == nil || pod.Volumes[0].Secret.SecretName != "sluice-ui-tls" {
		t.Errorf("volumes: %v", pod.Volumes)
	}
}

// ofUI reads the one object of the kind in config/ui.
func ofUI[T any](t *testing.T, kind string) T {
	t.Helper()
	objects := build(t, "ui")
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == kind })
	if at < 0 {
		t.Fatalf("config/ui has no %s", kind)
	}
	return as[T](t, objects[at])
}
