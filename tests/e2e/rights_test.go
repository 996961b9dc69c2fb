package e2e

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/tests/testenv"
)

// restrict has the program run as a user with the role that the project ships for everything, with the one of its plane, and
// with no other rights. It returns the user's name, as the audit log has it.
func (s *scene) restrict(plane string) (user string) {
	s.t.Helper()
	user = "sluice-" + s.namespace
	var err error
	if s.kubeconfig, err = env.KubeconfigAs(user); err != nil {
		s.t.Fatal(err)
	}
	for _, file := range []string{"role.yaml", plane} {
		role := &rbacv1.ClusterRole{}
		manifest, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "rbac", file))
		if err == nil {
			err = utilyaml.Unmarshal(manifest, role)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if err := env.Client.Create(s.t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatal(err)
		}
		s.bind(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, role.Name)
	}
	return user
}

// bind grants a cluster role everywhere, until the test is over.
func (s *scene) bind(subject rbacv1.Subject, role string) {
	s.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: s.namespace + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
	s.make(binding)
	s.t.Cleanup(func() {
		if err := env.Client.Delete(context.WithoutCancel(s.t.Context()), binding); err != nil {
			s.t.Error(err)
		}
	})
}

// account makes a ServiceAccount without rights.
func (s *scene) account(name string) {
	s.t.Helper()
	s.make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
}

// make creates objects as an administrator.
func (s *scene) make(objects ...client.Object) {
	s.t.Helper()
	for _, obj := range objects {
		if err := env.Client.Create(s.t.Context(), obj); err != nil {
			s.t.Fatalf("make %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// amend edits an object as an administrator, whatever version it has by now.
func (s *scene) amend(obj client.Object, edit func()) {
	s.t.Helper()
	if err := env.Client.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatal(err)
	}
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		s.t.Fatalf("%T cannot be copied", obj)
	}
	edit()
	if err := env.Client.Patch(s.t.Context(), obj, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}
