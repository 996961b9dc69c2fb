// Package approval_test tries the policies in config/approval on a real API server, with the roles that people get and
// with the controllers of Kubernetes that delete objects.
package approval_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/testenv"
)

const (
	// editor edits packages, and may write any status besides.
	editor = "editor"
	// approver is an editor with the right to approve.
	approver = "approver"
	// controller is the account that config/default makes.
	controller = "system:serviceaccount:sluice-system:sluice"

	// right is what each refusal names.
	right = "packagerevisions/approval"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) {
	os.Exit(testenv.MainWith(m, &env, testenv.Options{Controllers: []string{
		"namespace-controller", "garbage-collector-controller", "validatingadmissionpolicy-status-controller",
	}}))
}

// installed installs once.
var installed = sync.OnceValue(func() error { return install(context.Background()) })

// newNamespace is a namespace of an API server that has the policies.
func newNamespace(t *testing.T) string {
	t.Helper()
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	return env.NewNamespace(t)
}

// install makes the roles and policies of config/default, and waits until the policies work.
func install(ctx context.Context) error {
	objects, err := config.Build(filepath.Join(testenv.Root(), "config", "default"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !slices.Contains([]string{
			"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		}, object.GetKind()) {
			continue
		}
		if err := env.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("make %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	writer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "status-writer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{packagesv1.GroupVersion.Group}, Resources: []string{"packagerevisions/status", "packagevariants/status"},
		Verbs: []string{"get", "update", "patch"},
	}, {
		APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"create", "update"},
	}}}
	if err := env.Client.Create(ctx, writer); err != nil {
		return err
	}
	for user, roles := range map[string][]string{
		editor:   {"sluice-view", "sluice-edit", "status-writer"},
		approver: {"sluice-view", "sluice-edit", "status-writer", "sluice-approve"},
		// It has no verb for what only people do; that is not what is tried here.
		controller: {"sluice-edit"},
	} {
		for _, role := range roles {
			if err := env.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}); err != nil {
				return err
			}
		}
	}
	return awaitPolicies(ctx)
}

// awaitPolicies waits until the API server knows the users' rights, and has read both policies: it asks for these by what
// they refuse.
func awaitPolicies(ctx context.Context) error {
	clients := map[string]client.Client{}
	for _, user := range []string{editor, approver, controller} {
		var err error
		if clients[user], err = as(user); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
		for kind, body := range map[string]string{
			packagesv1.PackageRevisionKind: draft + ", lifecycle: Proposed}",
			packagesv1.PackageVariantKind:  variant + ", approval: {policy: Always}}",
		} {
			for user, acting := range clients {
				object, err := parse(kind, "default", body)
				if err != nil {
					return false, err
				}
				if refusal(acting.Create(ctx, object, client.DryRunAll), user == editor) != "" {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// as is a client that acts as another user.
func as(user string) (client.Client, error) {
	impersonated := rest.CopyConfig(env.Config)
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return client.New(impersonated, client.Options{Scheme: env.Scheme})
}

func actAs(t *testing.T, user string) client.Client {
	t.Helper()
	acting, err := as(user)
	if err != nil {
		t.Fatal(err)
	}
	return acting
}

const (
	// draft and variant are the beginnings of specs.
	draft   = "spec: {repository: edge, package: web, workspace: one"
	variant = "spec: {upstream: {repo: blueprints, package: web}, downstream: {repo: edge}"

	commit1 = "1111111111111111111111111111111111111111"
	commit2 = "2222222222222222222222222222222222222222"
)

// parse reads the body of an object. Its name is "web" where the body has none.
func parse(kind, namespace, body string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	body = strings.NewReplacer("COMMIT1", "'"+commit1+"'", "COMMIT2", "'"+commit2+"'").Replace(body)
	if err := yaml.UnmarshalStrict([]byte(body), &object.Object); err != nil {
		return nil, fmt.Errorf("parse %s: %w", body, err)
	}
	object.SetGroupVersionKind(packagesv1.GroupVersion.WithKind(kind))
	object.SetNamespace(namespace)
	if object.GetName() == "" {
		object.SetName("web")
	}
	return object, nil
}

// given makes an object as an administrator, with its status.
func given(t *testing.T, kind, namespace, body string) *unstructured.Unstructured {
	t.Helper()
	object, err := parse(kind, namespace, body)
	if err != nil {
		t.Fatal(err)
	}
	status, reported := object.Object["status"]
	if err := env.Client.Create(t.Context(), object, client.FieldOwner("given"), strict); err != nil {
		t.Fatal(err)
	}
	if object.Object["status"] = status; reported {
		if err := env.Client.Status().Update(t.Context(), object, client.FieldOwner("given")); err != nil {
			t.Fatal(err)
		}
	}
	return object
}

// strict makes an unknown field an error.
var strict = client.FieldValidation(metav1.FieldValidationStrict)

// refusal says in which way an answer is another one than was wanted: the policy's refusal, or none.
func refusal(err error, want bool) string {
	switch {
	case !want && err != nil:
		return fmt.Sprintf("refused: %v", err)
	case want && err == nil:
		return "was allowed"
	case want && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), right)):
		return fmt.Sprintf("refused by something else than the policy: %v", err)
	}
	return ""
}
