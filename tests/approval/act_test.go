package approval_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// act is what a user does to an object that is there.
type act func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error

// patch is a merge patch, as kubectl edit and kubectl patch send for these kinds.
func patch(body string) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		return as.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

// patchStatus is the same for status.
func patchStatus(body string) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		return as.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

// operations is a list of JSON patch operations.
func operations(body string) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		return as.Patch(ctx, object, client.RawPatch(types.JSONPatchType, []byte(body)))
	}
}

// apply is a server-side apply that takes all fields over; with a status it is one of that.
func apply(body string) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		want, err := parse(object.GetKind(), object.GetNamespace(), body)
		if err != nil {
			return err
		}
		if _, found := want.Object["status"]; found {
			return as.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner("person"), client.ForceOwnership)
		}
		return as.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner("person"), client.ForceOwnership)
	}
}

// replace writes the object again with other fields in its spec.
func replace(fields map[string]any) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		for name, value := range fields {
			if err := unstructured.SetNestedField(object.Object, value, "spec", name); err != nil {
				return err
			}
		}
		return as.Update(ctx, object)
	}
}

// replaceStatus writes the status again with other fields.
func replaceStatus(fields map[string]any) act {
	return func(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
		for name, value := range fields {
			if err := unstructured.SetNestedField(object.Object, value, "status", name); err != nil {
				return err
			}
		}
		return as.Status().Update(ctx, object)
	}
}

func remove(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
	return as.Delete(ctx, object)
}

// removeAll deletes all objects of the kind in the namespace in one request.
func removeAll(ctx context.Context, as client.Client, object *unstructured.Unstructured) error {
	return as.DeleteAllOf(ctx, object, client.InNamespace(object.GetNamespace()))
}

// attempt is something that a user does, and whether it takes the right to approve.
type attempt struct {
	reason string
	before string // an object that an administrator has made; "" for none
	act    act    // on that object
	create string // or what is created
	right  bool
}

// testAttempts tries each as the editor, as the approver, and as the controller.
func testAttempts(t *testing.T, kind string, cases map[string]attempt) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, user := range []string{editor, approver, controller} {
				if wrong := refusal(try(t, kind, user, tc), tc.right && user == editor); wrong != "" {
					t.Errorf("%s\nas %s: %s", tc.reason, user, wrong)
				}
			}
		})
	}
}

func try(t *testing.T, kind, user string, tc attempt) error {
	t.Helper()
	namespace, acting := newNamespace(t), actAs(t, user)
	if tc.create != "" {
		object, err := parse(kind, namespace, tc.create)
		if err != nil {
			t.Fatal(err)
		}
		return acting.Create(t.Context(), object, strict)
	}
	return tc.act(t.Context(), acting, given(t, kind, namespace, tc.before))
}
