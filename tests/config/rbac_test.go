package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRightsAreFew: what the controller may do is listed here too, so that a right is never added in passing.
func TestRightsAreFew(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"events":     {"create", "patch"},
		"configmaps": {"get", "list", "watch"},
		"secrets":    {"get"},
		"namespaces": {"get", "list", "watch"},
		// As these accounts the objects of modules are applied, and what goes into packages is read.
		"serviceaccounts":                                           {"get", "impersonate", "list", "watch"},
		"leases.coordination.k8s.io":                                {"create", "get", "patch", "update"},
		"gitrepositories.source.toolkit.fluxcd.io":                  {"create", "delete", "get", "list", "patch", "update", "watch"},
		"gitrepositories/finalizers.source.toolkit.fluxcd.io":       {"update"},
		"gitrepositories/status.source.toolkit.fluxcd.io":           {"get", "patch", "update"},
		"ocirepositories.source.toolkit.fluxcd.io":                  {"create", "delete", "get", "list", "patch", "update", "watch"},
		"buckets.source.toolkit.fluxcd.io":                          {"get", "list", "patch", "update", "watch"},
		"buckets/finalizers.source.toolkit.fluxcd.io":               {"update"},
		"buckets/status.source.toolkit.fluxcd.io":                   {"get", "patch", "update"},
		"externalartifacts.source.toolkit.fluxcd.io":                {"create", "delete", "get", "list", "patch", "watch"},
		"externalartifacts/status.source.toolkit.fluxcd.io":         {"get", "patch"},
		"artifactgenerators.source.extensions.fluxcd.io":            {"get", "list", "patch", "update", "watch"},
		"artifactgenerators/status.source.extensions.fluxcd.io":     {"get", "patch", "update"},
		"artifactgenerators/finalizers.source.extensions.fluxcd.io": {"update"},
		"ocirepositories/finalizers.source.toolkit.fluxcd.io":       {"update"},
		"ocirepositories/status.source.toolkit.fluxcd.io":           {"get", "patch", "update"},
		"helmcharts.source.toolkit.fluxcd.io":                       {"get", "list", "patch", "update", "watch"},
		"helmcharts/finalizers.source.toolkit.fluxcd.io":            {"update"},
		"helmcharts/status.source.toolkit.fluxcd.io":                {"get", "patch", "update"},
		"helmrepositories.source.toolkit.fluxcd.io":                 {"get", "list", "patch", "update", "watch"},
		"helmrepositories/finalizers.source.toolkit.fluxcd.io":      {"update"},
		"helmrepositories/status.source.toolkit.fluxcd.io":          {"get", "patch", "update"},
		// Whether a kind is gone for good, and not only out of reach.
		"customresourcedefinitions.apiextensions.k8s.io":    {"get", "list"},
		"moduletemplates.modules.sluice.dev":                {"get", "list", "watch"},
		"moduletemplates/status.modules.sluice.dev":         {"get", "patch", "update"},
		"modules.modules.sluice.dev":                        {"get", "list", "watch"},
		"modules/status.modules.sluice.dev":                 {"get", "patch", "update"},
		"moduleinstallations.modules.sluice.dev":            {"get", "list", "patch", "update", "watch"},
		"moduleinstallations/status.modules.sluice.dev":     {"get", "patch", "update"},
		"moduleinstallations/finalizers.modules.sluice.dev": {"update"},
		"inventories.modules.sluice.dev":                    {"create", "delete", "get", "list", "update", "watch"},
		"repositories.packages.sluice.dev":                  {"get", "list", "patch", "update", "watch"},
		"repositories/status.packages.sluice.dev":           {"get", "patch", "update"},
		"repositories/finalizers.packages.sluice.dev":       {"update"},
		"packagevariants.packages.sluice.dev":               {"create", "delete", "get", "list", "patch", "update", "watch"},
		"packagevariantsets.packages.sluice.dev":            {"get", "list", "patch", "update", "watch"},
		// What the variants of a set with waves are made of, until the last one has gone on.
		"controllerrevisions.apps":                          {"create", "delete", "list", "patch", "update"},
		"packagevariantsets/status.packages.sluice.dev":     {"get", "patch", "update"},
		"packagevariantsets/finalizers.packages.sluice.dev": {"update"},
		"packagevariants/status.packages.sluice.dev":        {"get", "patch", "update"},
		"packagevariants/finalizers.packages.sluice.dev":    {"update"},
		"packagerevisions.packages.sluice.dev":              {"create", "delete", "get", "list", "patch", "update", "watch"},
		"packagerevisions/status.packages.sluice.dev":       {"get", "patch", "update"},
		"packagerevisions/finalizers.packages.sluice.dev":   {"update"},
		// What a variant's policy approves, the controller approves.
		"packagerevisions/approval.packages.sluice.dev": {"update"},
	}
	got := map[string][]string{}
	for _, rule := range rules(t, "default") {
		if len(rule.NonResourceURLs) != 0 {
			t.Errorf("a rule is about URLs: %v", rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := resource
				if group != "" {
					name += "." + group
				}
				got[name] = append(got[name], rule.Verbs...)
				slices.Sort(got[name])
				got[name] = slices.Compact(got[name]) // Both roles have some of them.
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights of the controller (-want +got):\n%s", diff)
	}
}

// TestSourcesAloneHaveNoRightsOfOthers: whoever controls the process can act as nobody else, and make no sources.
func TestSourcesAloneHaveNoRightsOfOthers(t *testing.T) {
	t.Parallel()
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: []string{"get"}},
		{APIGroups: []string{"source.extensions.fluxcd.io"}, Resources: []string{"artifactgenerators"}, Verbs: []string{"get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{"source.extensions.fluxcd.io"}, Resources: []string{"artifactgenerators/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"source.extensions.fluxcd.io"}, Resources: []string{"artifactgenerators/status"}, Verbs: []string{"get", "patch", "update"}},
		{
			APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"buckets", "gitrepositories", "helmcharts", "helmrepositories", "ocirepositories"},
			Verbs: []string{"get", "list", "patch", "update", "watch"},
		},
		{
			APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"buckets/finalizers", "gitrepositories/finalizers", "helmcharts/finalizers", "helmrepositories/finalizers", "ocirepositories/finalizers"},
			Verbs: []string{"update"},
		},
		{
			APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"buckets/status", "gitrepositories/status", "helmcharts/status", "helmrepositories/status", "ocirepositories/status"},
			Verbs: []string{"get", "patch", "update"},
		},
		// What is generated is shown as ExternalArtifacts.
		{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"externalartifacts"}, Verbs: []string{"create", "delete", "get", "list", "patch", "watch"}},
		{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"externalartifacts/status"}, Verbs: []string{"get", "patch"}},
	}
	for _, overlay := range []string{"sources", "flux-system"} {
		if diff := cmp.Diff(want, rules(t, overlay)); diff != "" {
			t.Errorf("rights with config/%s (-want +got):\n%s", overlay, diff)
		}
		for _, object := range build(t, overlay) {
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range []string{"modules.sluice.dev", "packages.sluice.dev"} {
				if strings.Contains(string(text), group) {
					t.Errorf("config/%s: %s %s is about %s", overlay, object.GetKind(), object.GetName(), group)
				}
			}
		}
	}
}

// TestFluxsNamespaceIsTheOnlyOne: what Flux's installation has is left alone, and nothing goes elsewhere.
func TestFluxsNamespaceIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "flux-system") {
		text, err := object.MarshalJSON()
		if err != nil || strings.Contains(string(text), "sluice-system") {
			t.Errorf("%s %s names sluice-system: %s, %v", object.GetKind(), object.GetName(), text, err)
		}
		if kind := object.GetKind(); kind == "CustomResourceDefinition" || kind == "Namespace" || kind == "NetworkPolicy" {
			t.Errorf("%s %s is Flux's", kind, object.GetName())
		}
	}
}

// TestNoRightOpensOthers: rights that would let the controller take or give more than it has.
func TestNoRightOpensOthers(t *testing.T) {
	t.Parallel()
	for _, rule := range rules(t, "default") {
		words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
		for _, forbidden := range []string{"*", "escalate", "bind", "serviceaccounts/token"} {
			if slices.Contains(words, forbidden) {
				t.Errorf("%q in %v", forbidden, rule)
			}
		}
		if slices.Contains(rule.Verbs, "impersonate") && !slices.Equal(rule.Resources, []string{"serviceaccounts"}) {
			t.Errorf("none but ServiceAccounts are impersonated: %v", rule)
		}
		broad := func(verb string) bool { return verb != "get" }
		if slices.Contains(rule.Resources, "secrets") && slices.ContainsFunc(rule.Verbs, broad) {
			t.Errorf("secrets are read one by one when needed, never listed, watched or written: %v", rule)
		}
	}
}

func TestRightsAreGivenToTheController(t *testing.T) {
	t.Parallel()
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "sluice", Namespace: namespace}}
	for _, name := range []string{"sluice-source", "sluice-modules", "sluice-packages"} {
		everywhere := find[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding", name)
		if diff := cmp.Diff(want, everywhere.Subjects); diff != "" || everywhere.RoleRef.Name != name {
			t.Errorf("binding of %s (-want +got):\n%s", everywhere.RoleRef.Name, diff)
		}
	}
	home := find[rbacv1.RoleBinding](t, "RoleBinding", "sluice-leader-election")
	if diff := cmp.Diff(want, home.Subjects); diff != "" || home.RoleRef.Name != "sluice-leader-election" {
		t.Errorf("binding of %s (-want +got):\n%s", home.RoleRef.Name, diff)
	}
	find[corev1.ServiceAccount](t, "ServiceAccount", "sluice")
}

// rules are what the controller may do. Roles of people are bound to nobody here.
func rules(t *testing.T, overlay string) []rbacv1.PolicyRule {
	t.Helper()
	objects := build(t, overlay)
	bound := map[string]bool{}
	for _, object := range objects {
		if role, found, _ := unstructured.NestedString(object.Object, "roleRef", "name"); found {
			bound[role] = true
		}
	}
	var all []rbacv1.PolicyRule
	for _, object := range objects {
		if !bound[object.GetName()] {
			continue
		}
		switch object.GetKind() {
		case "ClusterRole":
			all = append(all, as[rbacv1.ClusterRole](t, object).Rules...)
		case "Role":
			all = append(all, as[rbacv1.Role](t, object).Rules...)
		}
	}
	return all
}
