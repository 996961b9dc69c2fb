package packages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// contextual is a package context as upstream has it.
const contextual = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\ndata:\n  name: app\n  tier: base\n  unwanted: words\n"

// adapted is a spec with something of everything that is put into a package.
func adapted(spec *packagesv1.PackageVariantSpec) {
	spec.Labels, spec.Annotations = map[string]string{"team": "blue", "site": "north"}, map[string]string{"example.com/contact": "blue-team"}
	spec.PackageContext = &packagesv1.PackageContext{Data: map[string]string{"cluster": "north-1", "tier": "edge"}, RemoveKeys: []string{"unwanted"}}
	spec.Namespace = "production"
	spec.Pipeline = &packagesv1.Pipeline{Mutators: []packagesv1.Function{
		{Image: "set-labels", Name: "stage.of.it", ConfigMap: map[string]string{"stage": "last"}},
		{Image: "set-annotations", ConfigMap: map[string]string{"example.com/note": "words"}},
	}}
}

// TestWhatLeavesTheSpecLeavesThePackage, a draft as well as what is published, and what people have put there stays.
func TestWhatLeavesTheSpecLeavesThePackage(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, policy := range map[string]packagesv1.ApprovalPolicy{"in-a-draft": packagesv1.ApprovalManual, "published": packagesv1.ApprovalInitial} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			s.release("v1", "1.0.0", map[string]string{"package-context.yaml": contextual})
			s.begin(adapted, approve(policy))
			s.settle()
			file, branch := s.open, "main"
			if policy == packagesv1.ApprovalInitial {
				s.released()
				file = s.published
			} else {
				branch = s.draft()
			}
			s.has(file("Kptfile"), "team: blue", "site: north", "example.com/contact: blue-team", "stage.of.it", "set-annotations", "set-namespace")
			s.has(file("package-context.yaml"), "cluster: north-1", "tier: edge")
			s.hasNot(file("package-context.yaml"), "unwanted")
			s.has(file("deployment.yaml"), "namespace: production", "stage: last", "example.com/note: words")
			s.person(branch, map[string]string{
				"Kptfile":              strings.Replace(file("Kptfile"), "    team: blue\n", "    team: blue\n    owner: ada\n", 1),
				"package-context.yaml": file("package-context.yaml") + "  mine: yes-it-is\n",
				"deployment.yaml":      strings.Replace(file("deployment.yaml"), "replicas: 1", "replicas: 8", 1),
			})
			s.edit(func(spec *packagesv1.PackageVariantSpec) {
				spec.Labels, spec.Annotations, spec.PackageContext = map[string]string{"site": "south"}, nil, nil
				spec.Namespace, spec.Pipeline = "", nil
			})
			s.settle()
			s.has(s.open("Kptfile"), "site: south", "owner: ada")
			s.hasNot(s.open("Kptfile"), "team:", "example.com/contact", "stage.of.it", "set-annotations", "set-namespace", "pipeline")
			s.has(s.open("package-context.yaml"), "tier: base", "unwanted: words", "mine: yes-it-is")
			s.hasNot(s.open("package-context.yaml"), "cluster:")
			s.has(s.open("deployment.yaml"), "replicas: 8")
			// Where an object was moved to another namespace and back, the mark that it is the same one stays.
			manifest := strings.Replace(s.open("deployment.yaml"), " # kpt-merge: /app", "", 1)
			if diff := cmp.Diff(scaled("1.0.0", "8"), manifest); diff != "" {
				t.Errorf("the manifest is not upstream's with the edit:\n%s", diff)
			}
			for path, content := range s.cluster.Tree(s.v.Status.Change.Commit) {
				if strings.HasPrefix(path, name+"/") && strings.Contains(content.Content, "kind: Namespace") {
					t.Errorf("the Namespace is still in %s", path)
				}
			}
			if s.v.Status.Change.ConflictCount != 0 {
				t.Errorf("nothing was in conflict: %+v", s.v.Status.Change.Conflicts)
			}
		})
	}
}

// TestRoundsChangeNothing: where nothing has moved, nothing is written, whatever the names of functions and variants look like.
func TestRoundsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "dotted.name-1")
	s.release("v1", "1.0.0", map[string]string{"package-context.yaml": contextual})
	s.begin(adapted)
	s.settle()
	refs, pushes, draft := s.cluster.Raw("for-each-ref"), s.server.Count(upstream.Push), s.v.Status.Change.Commit
	for range 3 {
		s.settle()
	}
	if now := s.cluster.Raw("for-each-ref"); now != refs || s.server.Count(upstream.Push) != pushes || s.v.Status.Change.Commit != draft {
		t.Errorf("rounds wrote to Git:\n%s", cmp.Diff(refs, now))
	}
	s.release("v2", "2.0.0", map[string]string{"package-context.yaml": contextual})
	s.settle()
	if got := strings.Count(s.open("Kptfile"), "stage.of.it"); got != strings.Count(s.cluster.Tree(draft)[s.name+"/Kptfile"].Content, "stage.of.it") {
		t.Errorf("the functions accumulate:\n%s", s.open("Kptfile"))
	}
	if s.v.Status.ObservedGeneration != s.v.Generation {
		t.Errorf("generation %d was observed, not %d", s.v.Status.ObservedGeneration, s.v.Generation)
	}
	for _, condition := range s.v.Status.Conditions {
		if condition.ObservedGeneration != s.v.Generation {
			t.Errorf("condition %s is of generation %d, not of %d", condition.Type, condition.ObservedGeneration, s.v.Generation)
		}
	}
}

// TestALargePackageIsInGitAlone: what is in it is no part of any object.
func TestALargePackageIsInGitAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	const half = 2 << 20 // More than the API server takes of an object.
	s.release("v1", "1.0.0", map[string]string{"one.txt": strings.Repeat("0123456789abcde\n", half/16), "two.txt": strings.Repeat("edcba9876543210\n", half/16)})
	s.begin()
	s.settle()
	r := s.revision()
	s.publish(s.v)
	if got := len(s.published("one.txt")) + len(s.published("two.txt")); got != 2*half {
		t.Errorf("%d bytes were published, not %d", got, 2*half)
	}
	for _, obj := range []any{s.v, r} {
		if text, err := json.Marshal(obj); err != nil || len(text) > 32<<10 {
			t.Errorf("%T takes %d bytes: %v", obj, len(text), err)
		}
	}
}
