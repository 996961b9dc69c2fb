package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

func as(account string) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.ServiceAccountName = account }
}

// grant lets an account do the verbs with the resources of the test's namespace, which are written as resource.group.
func (s moduleScene) grant(account string, verbs []string, resources ...string) {
	s.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: account + "-"}}
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, Verbs: verbs})
	}
	s.make(role)
	s.make(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	})
}

// allVerbs are what an installation's objects need.
func allVerbs() []string { return []string{"get", "list", "watch", "create", "patch", "delete"} }

func TestModuleTenantWithoutRightsIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.account("tenant")
	s.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "values"}, StringData: map[string]string{"colour": "red"}})
	s.install("app", as("tenant"), func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.SubstituteFrom = []modulesv1.SubstituteReference{{Kind: "Secret", Name: "values"}}
		spec.DependsOn = []modulesv1.Dependency{{APIVersion: "v1", Kind: "ServiceAccount", Name: "tenant"}}
	})
	account := "system:serviceaccount:" + s.namespace + ":tenant"
	forbidden := func(stage string, words ...string) {
		t.Helper()
		obj := s.until("app", stage, func(obj *modulesv1.ModuleInstallation) bool {
			ready := conditions.Get(obj, meta.ReadyCondition)
			return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == modulesv1.ForbiddenReason &&
				!slices.ContainsFunc(append(words, account), func(word string) bool { return !strings.Contains(ready.Message, word) })
		})
		t.Logf("%s: %s", stage, conditions.GetMessage(obj, meta.ReadyCondition))
	}
	forbidden("values cannot be read", "get", "secrets")
	s.told("app", corev1.EventTypeWarning, modulesv1.ForbiddenReason, "secrets")
	s.grant("tenant", []string{"get"}, "secrets", "serviceaccounts")
	forbidden("objects cannot be applied", "patch", "configmaps")
	s.grant("tenant", allVerbs(), "configmaps", "serviceaccounts")
	forbidden("roles cannot be applied", "patch", "roles")
	s.grant("tenant", allVerbs(), "roles.rbac.authorization.k8s.io")
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)

	// Healing and removing is the tenant's, too.
	if err := env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-app"}}); err != nil {
		t.Fatal(err)
	}
	s.becomes("settings-app", "1.0.0")
	s.remove("app")
	s.gone("app")
	s.touchesNoTenant()
}

// touchesNoTenant checks all that the program has asked for so far: as itself it reads and writes its own kinds and
// sources, and what these name; everything else it asks for as somebody who may.
func (s moduleScene) touchesNoTenant() {
	s.t.Helper()
	own := map[string]bool{"modules.sluice.dev": true, "source.toolkit.fluxcd.io": true, "source.extensions.fluxcd.io": true, "coordination.k8s.io": true}
	seen := 0
	for _, r := range s.requests() {
		if r.Object.Resource == "" || r.Impersonated() != "" {
			seen++
			continue
		}
		if !own[r.Object.Group] && !allowed(r) {
			s.t.Errorf("asked for what is a tenant's, under its own name: %s", lines([]testenv.Request{r}))
		}
	}
	if seen == 0 {
		s.t.Error("the audit log shows nothing that was done as somebody else")
	}
}

// allowed says that the program may ask for this as itself: events about its objects, namespaces by their labels, which
// kinds there are, and whether a ServiceAccount exists.
func allowed(r testenv.Request) bool {
	if r.Object.Resource == "customresourcedefinitions" {
		return r.Verb == "get" || r.Verb == verbList
	}
	if r.Object.Group != "" && r.Object.Group != "events.k8s.io" {
		return false
	}
	switch r.Object.Resource {
	case "events":
		return r.Verb == "create" || r.Verb == verbPatch
	case "namespaces", "serviceaccounts":
		return r.Verb == "get" || r.Verb == verbList || r.Verb == "watch"
	}
	return false
}

func TestModuleAccountsAreChecked(t *testing.T) {
	t.Parallel()
	front := newFront(t)
	s := newRunningModules(t, front.flag)
	front.manager.Store(s.manager)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("missing", as("nobody"))
	obj := s.until("missing", "the account is missing", func(obj *modulesv1.ModuleInstallation) bool {
		return conditions.GetReason(obj, meta.ReadyCondition) == modulesv1.ServiceAccountNotFoundReason
	})
	if message := conditions.GetMessage(obj, meta.ReadyCondition); !strings.Contains(message, s.namespace+"/nobody") {
		t.Errorf("the message names no account: %s", message)
	}
	s.install("none", as(""))
	obj = s.until("none", "no account is named", func(obj *modulesv1.ModuleInstallation) bool {
		return conditions.GetReason(obj, meta.ReadyCondition) == modulesv1.ServiceAccountMissingReason
	})
	if !conditions.IsTrue(obj, meta.StalledCondition) {
		t.Errorf("an installation without an account waits for something: %s", asJSON(obj.Status.Conditions))
	}
	s.account("nobody")
	s.grant("nobody", allVerbs(), "configmaps", "serviceaccounts", "roles.rbac.authorization.k8s.io")
	s.ready("missing", "1.0.0")
	s.touchesNoTenant()

	// The operator's settings decide for those that name none.
	s.stop()
	byDefault := s
	byDefault.flags = append(slices.Clone(s.flags), "--default-service-account="+deployer)
	byDefault.start()
	front.manager.Store(byDefault.manager)
	byDefault.ready("none", "1.0.0")
	if len(byDefault.memberCalls()) == 0 {
		t.Error("the installation without an account was not installed as the default one")
	}
	byDefault.touchesNoTenant()
}

func TestModuleOwnIdentityIsForTheFlagAlone(t *testing.T) {
	t.Parallel()
	s := newModuleScene(t, "--modules-own-identity")
	s.bind(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.user}, "cluster-admin")
	s.start()
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app", as(""))
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	for _, r := range s.requests() {
		if r.Impersonated() != "" {
			t.Errorf("worked as somebody else: %s", lines([]testenv.Request{r}))
		}
	}
}
