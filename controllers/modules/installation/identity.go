package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// identity is as whom the installation's objects are read and written. Only an edit, or other settings of the operator,
// help against its error.
func (k *installations) identity(obj *modulesv1.ModuleInstallation) (cluster.Identity, error) {
	name := obj.Spec.ServiceAccountName
	if name == "" {
		name = k.options.DefaultServiceAccount
	}
	switch {
	case name != "":
		return cluster.Identity{Namespace: obj.Namespace, ServiceAccount: name}, nil
	case k.options.AllowOwnIdentity:
		return cluster.Identity{}, nil
	default:
		return cluster.Identity{}, failure.Stall(modulesv1.ServiceAccountMissingReason, errors.New(
			"serviceAccountName names no ServiceAccount, and the controller's settings neither name one nor allow its own identity"))
	}
}

// explainForbidden says so where a right is missing because the ServiceAccount itself is.
func (k *installations) explainForbidden(ctx context.Context, identity cluster.Identity, err error) error {
	found := failure.Of(err)
	if found == nil || found.Reason != modulesv1.ForbiddenReason || identity.ServiceAccount == "" {
		return err
	}
	key := client.ObjectKey{Namespace: identity.Namespace, Name: identity.ServiceAccount}
	if lookup := k.options.Reader.Get(ctx, key, &corev1.ServiceAccount{}); !apierrors.IsNotFound(lookup) {
		return err
	}
	return &failure.Error{
		Disposition: found.Disposition, Reason: modulesv1.ServiceAccountNotFoundReason, After: found.After,
		Err: fmt.Errorf("service account %s does not exist: %w", key, err),
	}
}
