package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// people makes the roles of people, which Kubernetes' own take in.
func (s moduleScene) people() {
	s.t.Helper()
	file, err := os.Open(filepath.Join(testenv.Root(), "config", "rbac", "people.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := utilyaml.NewYAMLToJSONDecoder(file)
	for {
		role := &rbacv1.ClusterRole{}
		err := reader.Decode(role)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if err := env.Client.Create(s.t.Context(), role); client.IgnoreAlreadyExists(err) != nil {
			s.t.Fatal(err)
		}
	}
}

// bindHere grants a cluster role in the scene's namespace.
func (s moduleScene) bindHere(subject rbacv1.Subject, role string) {
	s.t.Helper()
	s.make(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	})
}

// may asks the API server whether a user may do something in the scene's namespace.
func (s moduleScene) may(ctx context.Context, user, verb, resource, subresource string) bool {
	s.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: modulesv1.GroupVersion.Group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: s.namespace,
		},
	}}
	if err := env.Client.Create(ctx, review); err != nil {
		s.t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestPeopleInstallWithKubernetesOwnRoles: who edits a namespace installs there, and nobody writes the records.
func TestPeopleInstallWithKubernetesOwnRoles(t *testing.T) {
	t.Parallel()
	s := newModuleScene(t)
	s.people()
	for role, writes := range map[string]bool{"view": false, "edit": true, "admin": true} {
		user := role + "-in-" + s.namespace
		s.bindHere(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, role)
		s.eventually(role+" has taken in the roles", func(ctx context.Context) (bool, string) {
			return s.may(ctx, user, "get", "moduleinstallations", "") && s.may(ctx, user, "create", "moduleinstallations", "") == writes, ""
		})
		for _, resource := range []string{"moduleinstallations", "moduletemplates", "modules"} {
			if s.may(t.Context(), user, "delete", resource, "") != writes {
				t.Errorf("%s may delete %s: want %t", role, resource, writes)
			}
			if s.may(t.Context(), user, "patch", resource, "status") {
				t.Errorf("%s may write the status of %s", role, resource)
			}
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			if s.may(t.Context(), user, verb, "inventories", "") {
				t.Errorf("%s may %s inventories", role, verb)
			}
		}
	}
}

// TestOperatorsReadInventories: which is a right that has to be given, as is the one to get artifacts through the API server.
func TestOperatorsReadInventories(t *testing.T) {
	t.Parallel()
	s := newModuleScene(t)
	s.people()
	user := "operator-in-" + s.namespace
	for _, role := range []string{"sluice-operate", "sluice-artifacts"} {
		s.bindHere(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, role)
	}
	s.eventually("the roles are bound", func(ctx context.Context) (bool, string) {
		return s.may(ctx, user, "list", "inventories", ""), ""
	})
	if s.may(t.Context(), user, "update", "inventories", "") {
		t.Error("an operator may write inventories")
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = user
	operator, err := typedcorev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for service, allowed := range map[string]bool{"source-controller:http": true, "other:http": false} {
		err := operator.RESTClient().Get().Namespace(s.namespace).Resource("services").Name(service).SubResource("proxy").Do(t.Context()).Error()
		if apierrors.IsForbidden(err) == allowed {
			t.Errorf("proxy of %s: %v", service, err)
		}
	}
}

// TestAnAdminsModuleDependsOnAnother: the role that the docs give a ServiceAccount lets it look at installations.
func TestAnAdminsModuleDependsOnAnother(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.people()
	s.account("tenant")
	s.bindHere(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "tenant"}, "admin")
	s.release("1.0.0", map[string]string{"settings.yaml": settings("settings", "1.0.0")})
	asTenant := func(spec *modulesv1.ModuleInstallationSpec) { spec.ServiceAccountName = "tenant" }
	s.install("ground", asTenant)
	s.install("app", asTenant, func(spec *modulesv1.ModuleInstallationSpec) {
		spec.DependsOn = []modulesv1.Dependency{{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind, Name: "ground"}}
	})
	s.ready("app", "1.0.0")
}
