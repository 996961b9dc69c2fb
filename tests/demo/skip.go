package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// skipped shows that a poll without news costs one small request upstream, and nothing else.
func (d *demo) skipped(ctx context.Context) error {
	before, err := d.app(ctx)
	if err != nil {
		return err
	}
	began, polls, clones := time.Now(), d.asked(upstream.LsRefs), d.asked(upstream.Fetch)
	if err := eventually(ctx, "upstream is asked three more times", func(context.Context) (bool, error) {
		return d.asked(upstream.LsRefs) >= polls+3, nil
	}); err != nil {
		return err
	}
	after, err := d.app(ctx)
	if err != nil {
		return err
	}
	d.say("in %s: %d polls, %d clones, resourceVersion %s -> %s", time.Since(began).Round(100*time.Millisecond),
		d.asked(upstream.LsRefs)-polls, d.asked(upstream.Fetch)-clones, before.ResourceVersion, after.ResourceVersion)
	if before.ResourceVersion != after.ResourceVersion || d.asked(upstream.Fetch) != clones {
		return fmt.Errorf("a reconcile without news wrote or fetched: status %+v", after.Status)
	}
	return nil
}

// skippedUnderFluxCRD replaces the CRD by one without our additional status field, as Flux installs it.
func (d *demo) skippedUnderFluxCRD(ctx context.Context) error {
	scheme := kruntime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register CRD types: %w", err)
	}
	c, err := client.New(d.env.Config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKey{Name: "gitrepositories." + sourcev1.GroupVersion.Group}, &crd); err != nil {
		return fmt.Errorf("get the CRD: %w", err)
	}
	ours := crd.DeepCopy()
	delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "contentConfigChecksum")
	if err := c.Update(ctx, &crd); err != nil {
		return fmt.Errorf("install Flux's CRD: %w", err)
	}
	// A reconcile request is answered in status; that write is the one in which the API server prunes the field.
	if err := d.kubectl(ctx, "", "annotate", "gitrepository", "app", "--overwrite", "reconcile.fluxcd.io/requestedAt=under-flux"); err != nil {
		return err
	}
	if err := eventually(ctx, "the API server prunes the field", func(ctx context.Context) (bool, error) {
		obj, err := d.app(ctx)
		return err == nil && obj.Status.LastHandledReconcileAt == "under-flux" && obj.Status.ContentConfigChecksum == "", err
	}); err != nil {
		return err
	}
	if err := d.skipped(ctx); err != nil {
		return err
	}
	ours.ResourceVersion = crd.ResourceVersion
	if err := c.Update(ctx, ours); err != nil {
		return fmt.Errorf("install our CRD again: %w", err)
	}
	return nil
}

// asked counts the requests of a kind for the app repository.
func (d *demo) asked(kind upstream.Kind) int {
	count := 0
	for _, request := range d.server.Requests() {
		if request.Kind == kind && strings.Contains(request.URI, "/app.git/") {
			count++
		}
	}
	return count
}
