package main

import (
	"bytes"
	"context"
	"fmt"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/helm/chart"
)

// charts is where charts are pushed to, each into a repository of its own.
const charts = "charts"

// chartFollowed makes a HelmChart as Flux's helm-controller makes it of a HelmRelease, and publishes a newer version.
func (d *demo) chartFollowed(ctx context.Context) error {
	if err := d.pushChart(ctx, "1.0.0"); err != nil {
		return err
	}
	objects := fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
spec:
  type: oci
  insecure: true
  url: %s
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: demo-cache
spec:
  chart: cache
  version: 1.x
  interval: 1s
  reconcileStrategy: ChartVersion
  sourceRef:
    kind: HelmRepository
    name: charts
`, d.registry.URL(charts))
	if err := d.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := d.waitChart(ctx, "1.0.0"); err != nil {
		return err
	}
	for _, version := range []string{"1.1.0", "2.0.0"} {
		if err := d.pushChart(ctx, version); err != nil {
			return err
		}
	}
	obj, err := d.waitChart(ctx, "1.1.0")
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "helmcharts"); err != nil {
		return err
	}
	return d.fetch(ctx, obj.Status.Artifact)
}

func (d *demo) waitChart(ctx context.Context, version string) (*sourcev1.HelmChart, error) {
	return waitFor[sourcev1.HelmChart](ctx, d, "demo-cache", "has the package of "+version, func(a *meta.Artifact) bool { return a.Revision == version })
}

// pushChart packages a version of the chart, and pushes it as 'helm push' does.
func (d *demo) pushChart(ctx context.Context, version string) error {
	built, err := chart.Build(ctx, chart.Folder{Files: fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: cache\nversion: " + version + "\n"), Mode: 0o644},
		"templates/cache.yaml": {Data: []byte(manifestOf("cache", 1)), Mode: 0o644},
	}})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := built.Write(ctx, &packed); err != nil {
		return err
	}
	if _, err := d.registry.Repository(charts+"/cache").PushHelm(ctx, version, packed.Bytes()); err != nil {
		return err
	}
	d.say("pushed chart cache %s to %s", version, d.registry.URL(charts))
	return nil
}
