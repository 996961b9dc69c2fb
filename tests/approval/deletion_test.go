package approval_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestANamespaceThatIsDeletedGoes: what is published there, and what the controller approves, keep it from nothing.
func TestANamespaceThatIsDeletedGoes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	given(t, packagesv1.PackageRevisionKind, namespace, isNewest)
	given(t, packagesv1.PackageVariantKind, namespace, always)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := env.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the namespace is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), object.Status.String()
	})
}

// TestWhatIsLeftInANamespaceThatEndsMayBeCleared: where the controller is gone, somebody has to take its finalizers away.
// Nothing is published there any more all the same.
func TestWhatIsLeftInANamespaceThatEndsMayBeCleared(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// Others' finalizers keep the objects, and with them the namespace.
	newest := given(t, packagesv1.PackageRevisionKind, namespace, finalized+isNewest)
	proposed := given(t, packagesv1.PackageRevisionKind, namespace,
		"metadata: {name: other, finalizers: [packages.sluice.dev/revision, example.com/mine]}\n"+isProposed)
	kept := given(t, packagesv1.PackageVariantKind, namespace, "metadata: {name: web, finalizers: [example.com/mine]}\n"+always)
	acting := actAs(t, editor)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := env.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the policy knows that the namespace ends", func(ctx context.Context) (bool, string) {
		said := refusal(acting.Delete(ctx, newest, client.DryRunAll), false)
		return said == "", said
	})
	if wrong := refusal(acting.Delete(t.Context(), kept), false); wrong != "" {
		t.Errorf("a variant in a namespace that ends: %s", wrong)
	}
	publish := patch(`{"spec":{"lifecycle":"Published","approvedCommit":"` + commit1 + `"}}`)
	if wrong := refusal(publish(t.Context(), acting, proposed), true); wrong != "" {
		t.Errorf("publishing in a namespace that ends: %s", wrong)
	}
	for _, left := range []client.Object{newest, proposed, kept} {
		cleared := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if wrong := refusal(client.IgnoreNotFound(acting.Patch(t.Context(), left, cleared)), false); wrong != "" {
			t.Errorf("clearing the finalizers of %s in a namespace that ends: %s", left.GetName(), wrong)
		}
	}
}

// TestTheRightMayBeForOneRevision: a role may name the revisions that it is about.
func TestTheRightMayBeForOneRevision(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const name = "approves-one"
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{packagesv1.GroupVersion.Group}, Resources: []string{right}, ResourceNames: []string{"mine"}, Verbs: []string{"update"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	edits := binding.DeepCopy()
	edits.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "edits"}
	edits.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sluice-edit"}
	for _, object := range []client.Object{role, binding, edits} {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	acting := actAs(t, name)
	testenv.Eventually(t, "the API server knows the roles", func(ctx context.Context) (bool, string) {
		object, err := parse(packagesv1.PackageRevisionKind, namespace, "metadata: {name: mine}\n"+draft+", lifecycle: Proposed}")
		if err != nil {
			return false, err.Error()
		}
		said := refusal(acting.Create(ctx, object, client.DryRunAll), false)
		return said == "", said
	})
	for revision, refused := range map[string]bool{"mine": false, "others": true} {
		object := given(t, packagesv1.PackageRevisionKind, namespace, "metadata: {name: "+revision+"}\n"+isNewest)
		leave := patch(`{"spec":{"lifecycle":"DeletionProposed"}}`)
		if wrong := refusal(leave(t.Context(), acting, object), refused); wrong != "" {
			t.Errorf("%s: %s", revision, wrong)
		}
	}
	// A variant is about revisions that nobody knows yet.
	object, err := parse(packagesv1.PackageVariantKind, namespace, "metadata: {name: mine}\n"+always)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := refusal(acting.Create(t.Context(), object), true); wrong != "" {
		t.Errorf("a variant of the same name: %s", wrong)
	}
}
