package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

const shopModule = "modules/shop"

// userDataSurvives uninstalls a module that brought two Namespaces, one of which a user keeps a volume in by now.
func (d *demo) userDataSurvives(ctx context.Context) error {
	pushed, err := d.registry.Repository(shopModule).PushFlux(ctx, "1.0.0", map[string]string{"shop.yaml": shopFile}, nil)
	if err != nil {
		return err
	}
	for _, manifest := range []string{installerManifest, fmt.Sprintf(shopManifest, d.registry.URL(shopModule), pushed.Digest)} {
		if err := d.kubectl(ctx, manifest, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	for _, call := range []func() error{
		func() error {
			return d.kubectl(ctx, "", "wait", "moduleinstallation/shop", "--for=condition=Ready", "--timeout=1m")
		},
		func() error { return d.kubectl(ctx, ordersManifest, "apply", "--namespace", "shop", "-f", "-") },
		func() error { return d.kubectl(ctx, "", "delete", "moduleinstallation", "shop", "--timeout=1m") },
		func() error {
			return d.kubectl(ctx, "", "wait", "namespace/shop-cache", "--for=delete", "--timeout=1m")
		},
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return errors.Join(
		d.volumeIsWhole(ctx),
		d.kubectl(ctx, "", "get", "namespace", "shop", "--show-labels"),
		d.kubectl(ctx, "", "get", "persistentvolumeclaims,configmaps", "--namespace", "shop"),
		d.kubectl(ctx, "", "get", "events", "--field-selector=involvedObject.kind=ModuleInstallation,involvedObject.name=shop",
			"-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"),
	)
}

// volumeIsWhole checks that neither the user's claim nor the Namespace around it is going, and that what the module had in
// it is gone.
func (d *demo) volumeIsWhole(ctx context.Context) error {
	for _, obj := range []client.Object{
		&corev1.Namespace{}, &corev1.PersistentVolumeClaim{},
	} {
		key := client.ObjectKey{Name: "shop"}
		if _, claim := obj.(*corev1.PersistentVolumeClaim); claim {
			key = client.ObjectKey{Namespace: "shop", Name: "orders"}
		}
		if err := d.env.Client.Get(ctx, key, obj); err != nil {
			return err
		}
		if obj.GetDeletionTimestamp() != nil || obj.GetLabels()["modules.sluice.dev/installation"] != "" {
			return fmt.Errorf("%T %s is going, or still the module's: %v", obj, key, obj.GetLabels())
		}
	}
	for _, gone := range []client.Object{&corev1.ConfigMap{}, &modulesv1.ModuleInstallation{}} {
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "shop"}, gone)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T of the module is left: %w", gone, err)
		}
	}
	return nil
}

// shopFile is a release with two Namespaces, and an object in one of them.
const shopFile = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: v1
kind: Namespace
metadata:
  name: shop-cache
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
  namespace: shop
data:
  currency: EUR
`

// shopManifest takes a repository and a digest.
const shopManifest = `apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleTemplate
metadata:
  name: shop-1.0.0
spec:
  moduleName: shop
  version: 1.0.0
  artifact:
    oci:
      repository: %s
      digest: %s
      tag: 1.0.0
      insecure: true
---
apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleInstallation
metadata:
  name: shop
spec:
  module:
    name: shop
    version: 1.0.0
  serviceAccountName: installer
`

// installerManifest is an account that sees all that may be in a Namespace: what it could not see would keep one.
const installerManifest = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: installer
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: demo-installer
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: installer, namespace: demo}
`

// ordersManifest is what a user keeps in the module's Namespace.
const ordersManifest = `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: orders
  namespace: shop
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`
