package packages_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/schema"
	"sluice.dev/sluice/tests/upstream"
)

// TestPackagesAreValidatedByTheAPIServer itself: what it would refuse never becomes a draft.
func TestPackagesAreValidatedByTheAPIServer(t *testing.T) {
	t.Parallel()
	client, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := rest.DefaultServerUrlFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlane(t, func(p *plane) {
		p.renderer = function.New(function.Options{Schemas: schema.NewServer(client, host, clock.RealClock{})})
	})
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	validated := kptfile + "pipeline:\n  validators:\n    - image: kubeconform\n      configMap:\n        strict: \"true\"\n"
	release := func(tag, deployment string) {
		blueprints.Tag("app/"+tag, blueprints.Commit("main", tag, upstream.Text(map[string]string{"app/Kptfile": validated, "app/deployment.yaml": deployment})), false)
	}
	whole := strings.Replace(deployment, "  template:\n", "  selector:\n    matchLabels:\n      app: app\n  template:\n", 1)
	release("v1", strings.Replace(deployment, "replicas: 1", `replicas: "1"`, 1))
	v := p.variant()
	until(p, v, "it is refused", func(v *packagesv1.PackageVariant) (bool, string) {
		text := said(v)
		return strings.Contains(text, packagesv1.RenderFailedReason) && strings.Contains(text, "deployment.yaml: spec.replicas: is a string, and has to be an integer") &&
			strings.Contains(text, "spec.selector: is missing"), text
	})
	release("v2", whole)
	p.again(v, func() string { return v.Status.LastHandledReconcileAt })
	p.drafted(v, cluster, func(files upstream.Files) bool { return files["app/deployment.yaml"].Content == whole })
}
