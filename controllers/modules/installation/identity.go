package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;impersonate

// identity is as whom the installation's objects are read and written. Beside an error that the account does not exist comes
// the identity that it would have.
func (k *installations) identity(ctx context.Context, obj *modulesv1.ModuleInstallation) (cluster.Identity, error) {
	name := k.account(obj)
	switch {
	case name != "":
		return cluster.Identity{Namespace: obj.Namespace, ServiceAccount: name}, k.exists(ctx, obj, name)
	case k.options.AllowOwnIdentity:
		return cluster.Identity{}, nil
	default:
		return cluster.Identity{}, failure.Stall(modulesv1.ServiceAccountMissingReason, errors.New(
			"serviceAccountName names no ServiceAccount, and the controller's settings neither name one nor allow its own identity"))
	}
}

// account is the name of the ServiceAccount that the installation works as; empty for none.
func (k *installations) account(obj *modulesv1.ModuleInstallation) string {
	return cmp.Or(obj.Spec.ServiceAccountName, k.options.DefaultServiceAccount)
}

// exists fails where there is no such account. The API server would let the controller impersonate it all the same, with
// whatever a binding that was left grants. The cache may not have heard of a new one yet.
func (k *installations) exists(ctx context.Context, obj *modulesv1.ModuleInstallation, name string) error {
	key, found := client.ObjectKey{Namespace: obj.Namespace, Name: name}, &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := k.options.Cache.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		err = k.options.Reader.Get(ctx, key, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		// What watches in its name ends with it.
		k.options.Engine.Forget(client.ObjectKeyFromObject(obj).String())
		return failure.Wait(modulesv1.ServiceAccountNotFoundReason, obj.Spec.GetRetryInterval(), fmt.Errorf(
			"service account %s does not exist; create it, or correct serviceAccountName", key))
	case err != nil:
		return fmt.Errorf("read service account %s: %w", key, err)
	default:
		return nil
	}
}

// onAccount finds the installations that work as an account which has come or gone.
func (k *installations) onAccount(ctx context.Context, before, after *metav1.PartialObjectMetadata) offers.Names {
	if before != nil && after != nil {
		return nil
	}
	account := cmp.Or(before, after)
	worksAs := func(obj *modulesv1.ModuleInstallation) bool { return k.account(obj) == account.Name }
	return k.options.Offers.Names(ctx, worksAs, client.InNamespace(account.Namespace))
}
