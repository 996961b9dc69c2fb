package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// driftHealed edits one object of the module and deletes another. Nothing is polled: watches tell.
func (d *demo) driftHealed(ctx context.Context) error {
	settings := client.ObjectKey{Namespace: namespace, Name: "redis-settings"}
	before := &corev1.ConfigMap{}
	if err := d.env.Client.Get(ctx, settings, before); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "patch", "configmap", settings.Name, "--type=merge", "-p", `{"data":{"maxmemory":"9999mb"}}`); err != nil {
		return err
	}
	edited, after := time.Now(), &corev1.ConfigMap{}
	if err := eventually(ctx, "the edit is healed", func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, settings, after)
		return err == nil && after.Data["maxmemory"] == before.Data["maxmemory"], err
	}); err != nil {
		return err
	}
	d.say("maxmemory is %s again, seen %s after the edit; resourceVersion %s -> %s", after.Data["maxmemory"],
		time.Since(edited).Round(time.Millisecond), before.ResourceVersion, after.ResourceVersion)
	if before.ResourceVersion == after.ResourceVersion {
		return errors.New("the edit was never made")
	}

	service := client.ObjectKey{Namespace: namespace, Name: "redis-operator"}
	gone, back := &corev1.Service{}, &corev1.Service{}
	if err := d.env.Client.Get(ctx, service, gone); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "delete", "service", service.Name, "--wait=false"); err != nil {
		return err
	}
	deleted := time.Now()
	if err := eventually(ctx, "the service is back", func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, service, back)
		return err == nil && back.UID != gone.UID, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	d.say("the service is back, seen %s after the delete", time.Since(deleted).Round(time.Millisecond))
	return d.kubectl(ctx, "", "get", "events", "--field-selector=reason="+modulesv1.DriftHealedReason,
		"-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message")
}

// deletionBlocked deletes the installation while a user's object of the module's kind exists. Nothing is removed until
// that is gone.
func (d *demo) deletionBlocked(ctx context.Context) error {
	for _, call := range []func() error{
		func() error { return d.kubectl(ctx, cacheManifest, "apply", "-f", "-") },
		func() error { return d.kubectl(ctx, "", "delete", "moduleinstallation", redis, "--wait=false") },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	obj, err := d.waitInstallation(ctx, "the deletion is blocked", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Deletion != nil && len(obj.Status.Deletion.BlockedBy) > 0
	})
	if err != nil {
		return err
	}
	if err := errors.Join(d.kubectl(ctx, "", "get", "moduleinstallation", redis), d.members(ctx)); err != nil {
		return err
	}
	for _, blocker := range obj.Status.Deletion.BlockedBy {
		d.say("blocked by %d %s.%s: %v", blocker.Count, blocker.Kind, blocker.Group, blocker.Examples)
	}

	if err := d.kubectl(ctx, "", "delete", "redis.cache.example.com", "sessions"); err != nil {
		return err
	}
	freed := time.Now()
	if err := eventually(ctx, "the installation is gone", func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, client.ObjectKeyFromObject(obj), &modulesv1.ModuleInstallation{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	d.say("the installation is gone %s after the data", since(freed))
	if err := d.nothingLeft(ctx); err != nil {
		return err
	}
	return errors.Join(d.members(ctx), d.kubectl(ctx, "", "get", "inventories"))
}

// nothingLeft checks that no object carries the installation's label any more, and that the inventory is gone.
func (d *demo) nothingLeft(ctx context.Context) error {
	for _, kind := range []metav1.TypeMeta{
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		{APIVersion: "v1", Kind: "ServiceAccount"},
		{APIVersion: "v1", Kind: "Service"},
		{APIVersion: "v1", Kind: "ConfigMap"},
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: kind}
		if err := d.env.Client.List(ctx, list, client.MatchingLabels{"modules.sluice.dev/installation": redis}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d objects of kind %s are left", len(list.Items), kind.Kind)
		}
	}
	inventories := &modulesv1.InventoryList{}
	if err := d.env.Client.List(ctx, inventories, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(inventories.Items) > 0 {
		return fmt.Errorf("%d inventories are left", len(inventories.Items))
	}
	return nil
}
