package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRolesOfPeopleJoinKubernetesOwn: the API server's controller finds the roles by these labels.
func TestRolesOfPeopleJoinKubernetesOwn(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][]string{
		"sluice-view":      {"admin", "edit", "view"},
		"sluice-edit":      {"admin", "edit"},
		"sluice-catalogue": nil,
		"sluice-operate":   nil,
		"sluice-artifacts": nil,
		"sluice-approve":   nil,
	} {
		var got []string
		for label, value := range find[rbacv1.ClusterRole](t, "ClusterRole", role).Labels {
			if name, found := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); found && value == "true" {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s joins (-want +got):\n%s", role, diff)
		}
	}
}

// TestApprovingIsARightOfItsOwn: no role that joins another one has it, nor any that takes it in with a wildcard.
func TestApprovingIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	const right = "packagerevisions/approval"
	for role, want := range map[string]bool{
		"sluice-view": false, "sluice-edit": false, "sluice-catalogue": false, "sluice-operate": false, "sluice-artifacts": false, "sluice-approve": true,
	} {
		got := false
		for _, rule := range find[rbacv1.ClusterRole](t, "ClusterRole", role).Rules {
			got = got || slices.Contains(rule.Resources, right) || slices.Contains(rule.Resources, "*")
		}
		if got != want {
			t.Errorf("%s may approve: %t", role, got)
		}
	}
}

// TestPeopleWriteNoRecords: an Inventory says what may be deleted, and status what is in use.
func TestPeopleWriteNoRecords(t *testing.T) {
	t.Parallel()
	reading := []string{"get", "list", "watch"}
	for _, role := range []string{"sluice-view", "sluice-edit", "sluice-catalogue", "sluice-operate", "sluice-artifacts"} {
		for _, rule := range find[rbacv1.ClusterRole](t, "ClusterRole", role).Rules {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reading, verb) })
			for _, resource := range rule.Resources {
				record := resource == "inventories" || strings.Contains(resource, "/") || resource == "*"
				if writes && (record || role != "sluice-edit") {
					t.Errorf("%s may %v %s", role, rule.Verbs, resource)
				}
			}
		}
	}
}
