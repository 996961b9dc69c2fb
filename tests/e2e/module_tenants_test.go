package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// tenant is the name of the account that each tenant's installations work as.
const tenant = "tenant"

// confined makes the tenant's account in the scene's namespace, with the rights that foo needs there and no others.
func (s moduleScene) confined() {
	s.t.Helper()
	s.account(tenant)
	s.grant(tenant, allVerbs(), "configmaps", "serviceaccounts", "roles.rbac.authorization.k8s.io")
}

// refused waits until an installation is told which right its account lacks, in so many words.
func (s moduleScene) refused(name string, words ...string) {
	s.t.Helper()
	s.until(name, "is refused: "+strings.Join(words, ", "), func(obj *modulesv1.ModuleInstallation) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == modulesv1.ForbiddenReason &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(ready.Message, word) })
	})
}

// TestModuleTenantsAreKeptApart: two tenants, in two namespaces, have an installation and an account of the same name.
func TestModuleTenantsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	other := s.inside(s.system)
	s.release("1.0.0", fooFiles("1.0.0"))
	for _, there := range []moduleScene{s, other} {
		there.confined()
		there.install("app", as(tenant), byVersion("1.0.0"))
	}
	for _, there := range []moduleScene{s, other} {
		there.ready("app", "1.0.0")
		there.exact("app", fooMembers("app", "1.0.0")...)
		there.says("settings-app", "1.0.0")
	}
	theirs, err := other.configMap(t.Context(), "settings-app")
	if err != nil {
		t.Fatal(err)
	}

	// The other's namespace is out of reach, whatever the spec says.
	account := "system:serviceaccount:" + s.namespace + ":" + tenant
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.TargetNamespace = s.system })
	s.refused("app", account, "may not patch configmaps in namespace "+s.system, "a Role and a RoleBinding")
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.TargetNamespace = "" })
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	for _, r := range s.requests() {
		if r.Impersonated() == account && r.Object.Namespace != s.namespace && r.Object.Resource != "" && r.Response.Code != 403 {
			t.Errorf("the tenant got out of its namespace: %s", lines([]testenv.Request{r}))
		}
	}

	// Rights that it is given there do not make the other's objects its own.
	s.make(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "guest"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: tenant}},
	})
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.TargetNamespace = s.system })
	s.failing("app", modulesv1.AppliedCondition, modulesv1.OwnershipConflictReason, s.system+"/app")
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.TargetNamespace = "" })
	s.ready("app", "1.0.0")
	if now, err := other.configMap(t.Context(), "settings-app"); err != nil || now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the other's object is %s, was %s, %v", asJSON(now), asJSON(theirs), err)
	}
	other.exact("app", fooMembers("app", "1.0.0")...)

	s.remove("app")
	s.gone("app")
	other.exact("app", fooMembers("app", "1.0.0")...)
	other.breaks("app", "1.0.0")
	s.touchesNoTenant()
}

func TestModuleTenantsHandOnNoRightsThatTheyLack(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.confined()
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app", as(tenant))
	s.ready("app", "1.0.0")

	// A role that says more than its maker may do.
	more := fooFiles("1.1.0")
	more["deploy/account.yaml"] = strings.Replace(more["deploy/account.yaml"], "resources: [configmaps]", "resources: [secrets]", 1)
	s.release("1.1.0", more)
	s.refused("app", tenant, "attempting to grant RBAC permissions not currently held", "secrets")
	s.says("settings-app", "1.1.0")
	s.grant(tenant, []string{"get"}, "secrets")
	s.ready("app", "1.1.0")

	// A kind without namespaces, which no RoleBinding helps to.
	more["cluster.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: " + s.namespace + "-foo\n"
	s.release("1.2.0", more)
	s.refused("app", "may not patch clusterroles.rbac.authorization.k8s.io:", "a ClusterRole and a ClusterRoleBinding")
	s.bind(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: tenant}, "cluster-admin")
	s.ready("app", "1.2.0")
	s.remove("app")
	s.gone("app")
	s.touchesNoTenant()
}

func TestModuleTenantsWorkAsTheirOwnAccountsAlone(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	other := s.inside(s.system)
	other.account("theirs")
	other.grant("theirs", allVerbs(), "configmaps", "serviceaccounts", "roles.rbac.authorization.k8s.io")
	for reason, account := range map[string]string{
		"Names are no paths.":          "../" + s.system + "/theirs",
		"Names have no parts.":         s.system + ":theirs",
		"Other users are no accounts.": "system:admin",
	} {
		err := env.Client.Create(t.Context(), s.installation("refused", as(account)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.serviceAccountName") {
			t.Errorf("%s: %v\n%s", account, err, reason)
		}
	}
	// An account is one of the same namespace, and the controller's own name is that of none.
	cases := map[string]string{"neighbour": "theirs", "controller": s.user}
	for name, account := range cases {
		s.install(name, as(account))
	}
	for name, account := range cases {
		obj := s.failing(name, modulesv1.AppliedCondition, modulesv1.ServiceAccountNotFoundReason, s.namespace+"/"+account+" does not exist")
		if obj.Status.Current != nil {
			t.Errorf("%s is installed: %s", name, asJSON(obj.Status))
		}
	}
	for _, r := range s.requests() {
		if as := r.Impersonated(); as != "" && !strings.HasPrefix(as, "system:serviceaccount:"+s.namespace+":") {
			t.Errorf("worked as somebody else: %s", lines([]testenv.Request{r}))
		}
		if r.Impersonated() != "" && r.Response.Code < 400 && r.Object.Resource != "" {
			t.Errorf("an account that does not exist was served: %s", lines([]testenv.Request{r}))
		}
	}
	// Nothing was made for them, so that nothing keeps them.
	for name := range cases {
		s.remove(name)
		s.gone(name)
	}
	s.touchesNoTenant()
}

// TestModuleReferencesStayInTheirNamespace: there is no field for a namespace. A client that asks to be told is told so,
// and for one that does not, the object of the same namespace is meant.
func TestModuleReferencesStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.confined()
	s.grant(tenant, []string{"get", "list", "watch"}, "secrets")
	other := s.inside(s.system)
	other.secret("values", map[string]string{"colour": "canary-of-the-neighbour-5521"})
	files := fooFiles("1.0.0")
	files["colour.yaml"] = strings.Replace(settings("colour", "${colour}"), `"${colour}"`, "${colour}", 1)
	s.release("1.0.0", files)
	there := map[string]any{"namespace": s.system}
	with := func(fields map[string]any) map[string]any {
		maps.Copy(fields, there)
		return fields
	}
	module := map[string]any{"name": "foo", "latest": true}
	cases := map[string]struct {
		kind string
		spec map[string]any
	}{
		"substitute-from": {modulesv1.ModuleInstallationKind, map[string]any{
			"module": module, "config": map[string]any{"substitute": map[string]any{"instance": "x"}, "substituteFrom": []any{with(map[string]any{"kind": "Secret", "name": "values"})}},
		}},
		"depends-on": {modulesv1.ModuleInstallationKind, map[string]any{
			"module": module, "dependsOn": []any{with(map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "values"})},
		}},
		"template-ref": {modulesv1.ModuleInstallationKind, map[string]any{
			"module": map[string]any{"templateRef": with(map[string]any{"name": "foo-9.9.9"})},
		}},
		"source-ref": {modulesv1.ModuleTemplateKind, map[string]any{
			"moduleName": "bar", "version": "1.0.0",
			"artifact": map[string]any{"sourceRef": with(map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "name": "theirs"})},
		}},
		"secret-ref": {modulesv1.ModuleTemplateKind, map[string]any{
			"moduleName": "baz", "version": "1.0.0", "artifact": map[string]any{"oci": map[string]any{
				"repository": s.registry.URL("modules/foo"), "digest": "sha256:" + strings.Repeat("0", 64), "insecure": true,
				"secretRef": with(map[string]any{"name": "values"}),
			}},
		}},
	}
	strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
	for name, tc := range cases {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(tc.spec)}}
		obj.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(tc.kind))
		obj.SetNamespace(s.namespace)
		obj.SetName(name)
		if tc.kind == modulesv1.ModuleInstallationKind {
			for field, value := range map[string]string{"serviceAccountName": tenant, "retryInterval": "1s"} {
				if err := unstructured.SetNestedField(obj.Object, value, "spec", field); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := strict.Create(t.Context(), obj.DeepCopy()); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `namespace"`) {
			t.Errorf("%s: %v, want to be told that there is no such field", name, err)
		}
		s.make(obj)
	}
	ociScene{other.scene}.create("theirs", s.registry.URL("modules/foo"), ociTag("1.0.0"))
	s.failing("substitute-from", modulesv1.AppliedCondition, modulesv1.BuildFailedReason, "values")
	s.until("depends-on", "waits for its own namespace's", func(obj *modulesv1.ModuleInstallation) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Reason == modulesv1.DependencyNotReadyReason && strings.Contains(ready.Message, "is missing")
	})
	s.failing("template-ref", modulesv1.ResolvedCondition, modulesv1.TemplateNotFoundReason, "foo-9.9.9")
	local := s
	local.system = s.namespace
	local.shows("source-ref", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.SourceNotFoundReason, "theirs does not exist")
	s.install("wants-secret", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module = modulesv1.ModuleRequest{Name: "baz", Latest: true}
	})
	local.shows("secret-ref", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactFailedReason, s.namespace+"/values")

	// With objects of its own, everything goes on.
	s.secret("values", map[string]string{"colour": "blue"})
	s.ready("substitute-from", "1.0.0")
	config, err := s.configMap(t.Context(), "colour-x")
	if err != nil || config == nil || config.Data["version"] != "blue" {
		t.Errorf("the colour is %s, %v, want blue", asJSON(config), err)
	}
	s.told("substitute-from", corev1.EventTypeNormal, modulesv1.InstallSucceededReason, "foo 1.0.0")
	s.tellsNoSecrets()
}
