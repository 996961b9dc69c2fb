package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestPackagesOverHTTPAndSSH: one package becomes a variant in each of three repositories, is drafted, proposed, approved,
// and follows upstream with what a person edited on a draft.
func TestPackagesOverHTTPAndSSH(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*packageScene){
		"HTTP": func(s *packageScene) { s.overHTTP() },
		"SSH":  func(s *packageScene) { s.overSSH() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPackageScene(t)
			s.restrict("packages_role.yaml")
			serve(s)
			tellPackageStory(s)
		})
	}
}

func tellPackageStory(s *packageScene) {
	clusters := []string{"north", "south", "west"}
	s.interval = 10 * time.Second // A server that speaks SSH does much for each who asks.
	s.repositories(append(clusters, blueprints)...)
	for name, repo := range s.repos {
		repo.Moved = func() { s.look(name) }
	}
	s.injects(clusters...)
	s.revise("web", 1)
	s.start()
	var variants []*packagesv1.PackageVariant
	for _, cluster := range clusters {
		variants = append(variants, s.variant("web", cluster))
		s.make(variants[len(variants)-1])
	}
	for _, v := range variants {
		s.isAdapted(v, s.drafted(v, 1))
		if got := s.repos[v.Spec.Downstream.Repo].Raw("rev-list", "--count", "main.."+branch(v)); got != "1" {
			s.t.Errorf("the draft in %s is %s commits, want one", v.Spec.Downstream.Repo, got)
		}
		s.publish(v)
		s.isOut(v, 1)
	}

	s.revise("web", 2)
	for _, v := range variants {
		s.drafted(v, 2)
	}
	north := variants[0]
	edited, err := s.person("north").Edit(branch(north), "Five of it", func(root *os.Root) error {
		return rewrite(root, "web/deployment.yaml", "replicas: 1", "replicas: 5")
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.look("north")
	s.revise("web", 3)
	for _, v := range variants {
		files, replicas := s.drafted(v, 3), "replicas: 1 # enough for most"
		if v == north {
			replicas = "replicas: 5 # enough for most"
		}
		if !strings.Contains(files["deployment.yaml"], replicas) {
			s.t.Errorf("the draft in %s has not %q:\n%s", v.Spec.Downstream.Repo, replicas, files["deployment.yaml"])
		}
		s.isAdapted(v, files)
	}
	s.repos["north"].Raw("merge-base", "--is-ancestor", edited, branch(north))
	for _, v := range variants {
		s.publish(v)
		s.isOut(v, 2)
	}
	if got := s.files(north, "main")["deployment.yaml"]; !strings.Contains(got, "replicas: 5") {
		s.t.Errorf("what was edited is not published:\n%s", got)
	}
	s.sound()
}

// isAdapted checks that the package is what the variant asks for.
func (s *packageScene) isAdapted(v *packagesv1.PackageVariant, files map[string]string) {
	s.t.Helper()
	cluster := v.Spec.Downstream.Repo
	for file, words := range map[string][]string{
		"Kptfile":         {"example.com/cluster: " + cluster, "packages.sluice.dev/variant: " + s.namespace + "/" + v.Name},
		"deployment.yaml": {"namespace: web-" + cluster, "tier: front", "name: web # people know it by this name"},
		"settings.yaml":   {"region: " + cluster},
	} {
		for _, want := range words {
			if !strings.Contains(files[file], want) {
				s.t.Errorf("%s in %s has not %q:\n%s", file, cluster, want, files[file])
			}
		}
	}
}

// isOut checks that the package is on the branch and tagged, beside what else is there, and that no change is left open.
func (s *packageScene) isOut(v *packagesv1.PackageVariant, number int) {
	s.t.Helper()
	repo := s.repos[v.Spec.Downstream.Repo]
	want := fmt.Sprintf("refs/heads/main\nrefs/tags/web/v%d", number)
	if number > 1 {
		want = "refs/heads/main\nrefs/tags/web/v1\nrefs/tags/web/v2"
	}
	if got := repo.Raw("for-each-ref", "--format=%(refname)"); got != want {
		s.t.Errorf("%s has the refs\n%s\nwant\n%s", repo.Name(), got, want)
	}
	if main, tag := repo.Raw("rev-parse", "main"), repo.Raw("rev-parse", fmt.Sprintf("web/v%d", number)); main != tag || main != v.Status.Published.Commit {
		s.t.Errorf("%s: main is at %s, the tag at %s, and the status says %s", repo.Name(), main, tag, v.Status.Published.Commit)
	}
	s.isAdapted(v, s.files(v, "main"))
	if got := repo.Tree("main")["README.md"].Content; got != "The packages of "+repo.Name()+".\n" {
		s.t.Errorf("what is of no package says %q", got)
	}
}

// rewrite replaces a text in a file that has it.
func rewrite(root *os.Root, file, from, to string) error {
	text, err := root.ReadFile(file)
	if err != nil {
		return err
	}
	after := strings.ReplaceAll(string(text), from, to)
	if after == string(text) {
		return fmt.Errorf("%s has not %q: %s", file, from, text)
	}
	return root.WriteFile(file, []byte(after), 0o600)
}
