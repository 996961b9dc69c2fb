package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// The module of the story, and its repository in the registry.
const (
	redis       = "redis"
	redisModule = "modules/redis"
)

// moduleInstalled publishes a module twice, and installs the release that a channel points at.
func (d *demo) moduleInstalled(ctx context.Context) error {
	var catalogue strings.Builder
	catalogue.WriteString(moduleManifest)
	for _, version := range []string{"1.0.0", "2.0.0"} {
		template, err := d.publishModule(ctx, version)
		if err != nil {
			return err
		}
		catalogue.WriteString(template)
	}
	if err := d.kubectl(ctx, catalogue.String()+deployerManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	began := time.Now()
	if err := d.kubectl(ctx, installationManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	obj, err := d.waitInstalled(ctx, "1.0.0")
	if err != nil {
		return err
	}
	d.say("ready %s after kubectl began: fetched from the registry, built, applied as ServiceAccount deployer, healthy", since(began))
	if err := eventually(ctx, "the module counts its installation", func(ctx context.Context) (bool, error) {
		module := &modulesv1.Module{}
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: redis}, module)
		return err == nil && module.Status.Installations == 1, err
	}); err != nil {
		return err
	}
	return errors.Join(
		d.kubectl(ctx, "", "get", "modules,moduletemplates"),
		d.kubectl(ctx, "", "get", "moduleinstallation", redis, "-o", "wide"),
		d.members(ctx),
		d.kubectl(ctx, "", "get", "inventory", obj.Status.Inventory.Name),
	)
}

// channelMoves shows that an installation follows the pointer of its channel, and that what the new release no longer
// has is pruned.
func (d *demo) channelMoves(ctx context.Context) error {
	began := time.Now()
	if err := d.pointChannel(ctx, "2.0.0"); err != nil {
		return err
	}
	obj, err := d.waitInstalled(ctx, "2.0.0")
	if err != nil {
		return err
	}
	d.say("upgraded %s after kubectl began", since(began))
	if obj.Status.Previous == nil || obj.Status.Previous.Version != "1.0.0" {
		return fmt.Errorf("the previous release is %+v, want 1.0.0", obj.Status.Previous)
	}
	return errors.Join(
		d.kubectl(ctx, "", "get", "moduleinstallation", redis),
		d.members(ctx),
		d.kubectl(ctx, "", "get", "events", "--field-selector=involvedObject.kind=ModuleInstallation,involvedObject.name="+redis,
			"-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"),
	)
}

// downgradeRefused moves the channel back: what is installed stays, and says why. Then it moves forward again.
func (d *demo) downgradeRefused(ctx context.Context) error {
	if err := d.pointChannel(ctx, "1.0.0"); err != nil {
		return err
	}
	obj, err := d.waitInstallation(ctx, "the downgrade is refused", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Reason == modulesv1.DowngradeBlockedReason
	})
	if err != nil {
		return err
	}
	if obj.Status.Current == nil || obj.Status.Current.Version != "2.0.0" || !conditions.IsReady(obj) {
		return fmt.Errorf("current release %+v, conditions %+v, want 2.0.0 to stay ready", obj.Status.Current, obj.Status.Conditions)
	}
	if err := d.kubectl(ctx, "", "get", "moduleinstallation", redis); err != nil {
		return err
	}
	d.say("%s: %s", obj.Status.Pending.Reason, obj.Status.Pending.Message)
	if err := d.pointChannel(ctx, "2.0.0"); err != nil {
		return err
	}
	_, err = d.waitInstalled(ctx, "2.0.0")
	return err
}

// publishModule pushes a release of the module, and gives its template.
func (d *demo) publishModule(ctx context.Context, version string) (string, error) {
	pushed, err := d.registry.Repository(redisModule).PushFlux(ctx, version, moduleFiles(version),
		map[string]string{ocispec.AnnotationVersion: version})
	if err != nil {
		return "", err
	}
	d.say("pushed %s:%s, %s", d.registry.URL(redisModule), version, pushed.Digest)
	return fmt.Sprintf(templateManifest, version, d.registry.URL(redisModule), pushed.Digest), nil
}

// pointChannel moves the pointer of the channel that the installation follows.
func (d *demo) pointChannel(ctx context.Context, version string) error {
	return d.kubectl(ctx, "", "patch", "module", redis, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"channels":[{"name":"regular","version":%q},{"name":"fast","version":"2.0.0"}]}}`, version))
}

// members lists the objects that carry the installation's label.
func (d *demo) members(ctx context.Context) error {
	return d.kubectl(ctx, "", "get", memberKinds, "-l", "modules.sluice.dev/installation="+redis, "-o",
		"custom-columns=KIND:.kind,NAME:.metadata.name,CREATED:.metadata.creationTimestamp,MAXMEMORY:.data.maxmemory")
}

// waitInstalled returns the installation as soon as the version is installed, healthy and wanted.
func (d *demo) waitInstalled(ctx context.Context, version string) (*modulesv1.ModuleInstallation, error) {
	return d.waitInstallation(ctx, version+" is installed", func(obj *modulesv1.ModuleInstallation) bool {
		return conditions.IsReady(obj) && conditions.IsTrue(obj, modulesv1.UpToDateCondition) &&
			obj.Status.ObservedGeneration == obj.Generation && obj.Status.Current != nil && obj.Status.Current.Version == version
	})
}

func (d *demo) waitInstallation(
	ctx context.Context, what string, holds func(*modulesv1.ModuleInstallation) bool,
) (*modulesv1.ModuleInstallation, error) {
	obj := &modulesv1.ModuleInstallation{}
	err := eventually(ctx, what, func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: redis}, obj)
		return err == nil && holds(obj), err
	})
	if err != nil {
		return nil, fmt.Errorf("%w; it waits for %+v, its conditions are %s", err, obj.Status.Pending, said(obj))
	}
	return obj, nil
}

// said is what the conditions say, a line each.
func said(obj conditions.Getter) string {
	var text strings.Builder
	for _, condition := range obj.GetConditions() {
		fmt.Fprintf(&text, "\n  %s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text.String()
}

func since(began time.Time) time.Duration { return time.Since(began).Round(10 * time.Millisecond) }
