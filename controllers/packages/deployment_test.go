package packages_test

import (
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestAPackageOfADeploymentKnowsWhereItIs: as with kpt, the context of the package itself says so, and no other one. An edit of the
// Repository is followed by the packages that are there.
func TestAPackageOfADeploymentKnowsWhereItIs(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.upstreams.Repository("cluster.git")
	cluster.AcceptPushes()
	repository := p.packages("cluster")
	repository.Spec.Directory, repository.Spec.Deployment = "sites/north", true
	p.create(p.source("cluster", p.server), repository)
	blueprint := strings.ReplaceAll(contextual, "name: app", "name: example")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{
		"app/Kptfile": kptfile, "app/package-context.yaml": blueprint, "app/db/Kptfile": kptfile, "app/db/package-context.yaml": blueprint,
		"app/cache/Kptfile": kptfile,
	})), false)
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "web/front" })
	const at = "sites/north/web/front/"
	deployed := strings.ReplaceAll(contextual, "name: app", "name: front") + "  package-path: sites/north/web/front\n"
	for _, step := range []struct {
		reason  string
		deploys bool
		want    string
	}{
		{"It is deployed from here.", true, deployed},
		{"It is a blueprint, and says what upstream's does.", false, blueprint},
		{"It is deployed again.", true, deployed},
	} {
		if repository.Spec.Deployment != step.deploys {
			p.ask(repository, func() { repository.Spec.Deployment = step.deploys })
		}
		files := p.drafted(v, cluster, func(files upstream.Files) bool { return files[at+"package-context.yaml"].Content == step.want })
		if got := files[at+"db/package-context.yaml"].Content; got != blueprint {
			t.Errorf("%s The subpackage's context is\n%s", step.reason, got)
		}
		if _, found := files[at+"cache/package-context.yaml"]; found {
			t.Errorf("%s A subpackage without a context has got one", step.reason)
		}
	}
}
