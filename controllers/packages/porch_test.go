package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

const namespacing = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1"

// porched is what Porch made of the story's package at v1 for a PackageVariant of its name.
func (s *story) porched(image string) map[string]string {
	return s.plane.porched(s.name, s.blueprints, image)
}

// porched is what Porch made of a package at v1 for a PackageVariant of its name: cloned, adapted, injected and rendered, in the layout
// in which Porch writes objects.
func (p *plane) porched(name string, blueprints *upstream.Edited, image string) map[string]string {
	url, commit := p.server.URL("blueprints.git"), blueprints.Raw("rev-parse", name+"/v1")
	git := fmt.Sprintf("  type: git\n  git:\n    repo: %s\n    directory: %s\n    ref: %[2]s/v1\n", url, name)
	return map[string]string{
		"Kptfile": fmt.Sprintf("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: %[1]s\nupstream:\n%[2]s  updateStrategy: resource-merge\n"+
			"upstreamLock:\n%[2]s    commit: %[3]s\ninfo:\n  readinessGates:\n  - conditionType: config.injection.ConfigMap.settings\n"+
			"pipeline:\n  mutators:\n  - name: PackageVariant.%[1]s..0\n    image: %[4]s\n    configMap:\n      namespace: edge\n"+
			"status:\n  conditions:\n  - type: config.injection.ConfigMap.settings\n    status: \"True\"\n    message: injected resource \"north\" from cluster\n    reason: ConfigInjected\n",
			name, git, commit, namespacing),
		"deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: # kpt-merge: /app\n  name: app # the app itself\n  namespace: edge\nspec:\n  replicas: 1\n  template:\n    spec:\n" +
			"      containers:\n      - name: app\n        image: example.com/app:" + image + "\n",
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: # kpt-merge: /settings\n  name: settings\n  namespace: edge\n  annotations:\n" +
			"    kpt.dev/config-injection: required\n    kpt.dev/injected-resource: north\ndata:\n  region: north\n",
	}
}

// moved makes the variant as it stood for Porch, and lets it take over what is there.
func (s *story) moved(change ...func(*packagesv1.PackageVariantSpec)) {
	s.Helper()
	s.begin(append([]func(*packagesv1.PackageVariantSpec){inject("reader", packagesv1.Injector{Name: "north"}), func(spec *packagesv1.PackageVariantSpec) {
		spec.AdoptionPolicy = packagesv1.AdoptExisting
		spec.Pipeline = &packagesv1.Pipeline{Mutators: []packagesv1.Function{{Image: namespacing, ConfigMap: map[string]string{"namespace": "edge"}}}}
	}}, change...)...)
}

// taken waits until the package is taken over as it is.
func (s *story) taken() {
	s.Helper()
	until(s.plane, s.v, "it is taken over", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Adopted != nil, fmt.Sprintf("%s, change %+v", said(v), v.Status.Change)
	})
}

// own are the refs of the story's package, and the folder that the branch has.
func (s *story) own() string {
	s.Helper()
	var own []string
	for line := range strings.Lines(refs(s.cluster)) {
		if strings.Contains(line, "/"+s.name+"/") {
			own = append(own, line)
		}
	}
	tree, err := s.cluster.Resolve("main:" + s.name)
	return fmt.Sprint(strings.Join(own, ""), tree, err != nil)
}

// TestWhatPorchKeptIsTakenOverWithoutACommit, in whatever state it is, and goes on like every variant's.
func TestWhatPorchKeptIsTakenOverWithoutACommit(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	scene.mayRead()
	scene.create(scene.regional("north", "north"))
	porch := upstream.Porch{Edited: scene.cluster}
	for name, test := range map[string]struct {
		reason string
		write  func(*testing.T, *story)
		// change is the workspace of the open change that is taken over, empty for none.
		change    string
		lifecycle packagesv1.Lifecycle
	}{
		"published": {"Nothing is open.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
			porch.Approve(s.name, "packagevariant-1", 1)
		}, "", ""},
		"edited": {"People edited what was published before.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
			porch.Approve(s.name, "packagevariant-1", 1)
			files := s.porched("1.0.0")
			files["deployment.yaml"], files["notes.txt"] = strings.ReplaceAll(files["deployment.yaml"], "replicas: 1", "replicas: 7"), "ours\n"
			porch.Draft(s.name, "people", "edit", files)
			porch.Propose(s.name, "people")
			porch.Approve(s.name, "people", 2)
		}, "", ""},
		"marked": {"Its deletion is proposed.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
			porch.Approve(s.name, "packagevariant-1", 1)
			porch.ProposeDeletion(s.name, 1)
		}, "", ""},
		"upgraded": {"A draft on top of what is published is open.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("0.9.0"))
			porch.Approve(s.name, "packagevariant-1", 1)
			porch.Draft(s.name, "packagevariant-2", "upgrade", s.porched("1.0.0"))
		}, "packagevariant-2", packagesv1.LifecycleDraft},
		"drafted": {"The first draft is open.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
		}, "packagevariant-1", packagesv1.LifecycleDraft},
		"offered": {"It is proposed, beside a draft of people's.", func(_ *testing.T, s *story) {
			porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
			porch.Propose(s.name, "packagevariant-1")
			porch.Draft(s.name, "people", "edit", s.porched("9.9.9"))
		}, "packagevariant-1", packagesv1.LifecycleProposed},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.story(t, name)
			s.release("v1", "1.0.0", map[string]string{"settings.yaml": point("ConfigMap", "settings", "required")})
			test.write(t, s)
			t.Parallel() // Porch writes one package at a time.
			before := s.own()
			s.moved()
			s.sync()
			s.taken()
			s.settle()
			if now := s.own(); now != before {
				t.Fatalf("%s it was written to:\n%s\nbefore:\n%s\n%s", test.reason, now, before, s.cluster.Raw("log", "-p", "-1", "--all", "--", s.name))
			}
			if change := s.v.Status.Change; (change == nil) != (test.change == "") || change != nil && (change.Workspace != test.change || change.Lifecycle != test.lifecycle) {
				t.Fatalf("%s the change is %+v", test.reason, change)
			}

			s.release("v2", "2.0.0", map[string]string{"settings.yaml": point("ConfigMap", "settings", "required")})
			s.settle()
			if test.lifecycle == packagesv1.LifecycleProposed {
				s.move(s.revision(), packagesv1.LifecycleDraft)
				s.settle()
			}
			s.has(s.open("Kptfile"), s.name+"/v2", "sluice.dev/"+s.namespace+"/"+s.name+"/0", "packages.sluice.dev/variant")
			s.hasNot(s.open("Kptfile"), "PackageVariant.")
			s.has(s.open("deployment.yaml"), "app:2.0.0", "namespace: edge")
			s.has(s.open("settings.yaml"), "region: north", "namespace: edge")
			if change := s.v.Status.Change; change.ConflictCount > 0 || test.change != "" && change.Workspace != test.change {
				t.Errorf("%s the change is %+v", test.reason, change)
			}
			if name == "edited" {
				s.has(s.open("deployment.yaml"), "replicas: 7")
				s.has(s.open("notes.txt"), "ours")
			}
			s.publish(s.v)
			if s.v.Status.Adopted != nil {
				t.Errorf("the package says by now whose it is: %+v", s.v.Status.Adopted)
			}
		})
	}
}

// TestOnlyOneVariantTakesOver what no variant's name stands in: the one that may, and of two the one that has it or was there first. Who
// has taken it over is quiet, also after a restart, and may be deleted like every other.
func TestOnlyOneVariantTakesOver(t *testing.T) {
	t.Parallel()
	s := newScene(t, frequent).story(t, "app")
	s.mayRead()
	s.create(s.regional("north", "north"))
	porch := upstream.Porch{Edited: s.cluster}
	s.release("v1", "1.0.0", map[string]string{"settings.yaml": point("ConfigMap", "settings", "required")})
	porch.Draft(s.name, "packagevariant-1", "", s.porched("1.0.0"))
	porch.Approve(s.name, "packagevariant-1", 1)
	before := refs(s.cluster)

	s.moved(func(spec *packagesv1.PackageVariantSpec) { spec.AdoptionPolicy = packagesv1.AdoptNone })
	fails(s.plane, s.v, packagesv1.NotOwnedReason, "adoptExisting")
	s.edit(func(spec *packagesv1.PackageVariantSpec) {
		spec.AdoptionPolicy, spec.DryRun = packagesv1.AdoptExisting, true
	})
	s.taken()
	if s.v.Status.Preview != nil || conditions.IsTrue(s.v, packagesv1.UpdatePendingCondition) {
		t.Errorf("a dry run would change something: %+v", s.v.Status.Preview)
	}
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.DryRun = false })
	second := s.variantNamed("second", func(spec *packagesv1.PackageVariantSpec) { *spec = *s.v.Spec.DeepCopy() })
	fails(s.plane, second, packagesv1.NotOwnedReason, "is kept by PackageVariant "+s.namespace+"/app")
	s.delete(second)
	s.gone(second)
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.AdoptionPolicy = packagesv1.AdoptNone })
	s.settle()
	s.quiet(s.cluster)
	s.stop()
	s.start()
	if s.settle(); s.v.Status.Adopted == nil || refs(s.cluster) != before {
		t.Errorf("%s after a restart: %+v, and\n%s", said(s.v), s.v.Status.Adopted, refs(s.cluster))
	}
	s.delete(s.v)
	s.gone(s.v)
	if now := refs(s.cluster); !strings.Contains(now, "refs/heads/deletionProposed/app/v1") {
		t.Errorf("its deletion is not proposed:\n%s", now)
	}
}
